"""Which queries may be taken over as they run: by what they are made of, and by what is left."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from definition.document import parse_definition
from protocol.messages.tasks import Reached, TaskReset
from worker.query_engine import QueryError, QuerySpec
from worker.secrets import Resolved
from worker.sinks.errors import FencedError
from worker.sinks.fence import Owner
from worker.spark import adoption
from worker.spark.adoption import Wanted, adopted
from worker.spark.backend import TakenOver
from worker.spark.settings import SparkSettings
from worker.spark.starts import StartSteps

SETTINGS = SparkSettings(app_name="a", checkpoint_root="/c", conf={"spark.sql.shuffle.partitions": "2"})
PLAIN: dict[str, Any] = {
    "source": {"format": "rate", "options": {"b": "1", "a": "2"}},
    "sink": {"format": "sql", "options": {"url": "sqlite:///x", "table": "t"}},
}


def spec(
    task: str = "t",
    token: int = 1,
    reset: TaskReset | None = None,
    reached: Reached | None = None,
    **more: Any,
) -> QuerySpec:
    """What a worker was granted."""
    document = {key: value for key, value in (PLAIN | more).items() if value is not None}
    return QuerySpec("g", task, token, parse_definition(msgspec.json.encode(document)), reset, reached)


def made_of(wanted: QuerySpec, settings: SparkSettings = SETTINGS, resolved: Any = None) -> str:
    """A digest of it; `resolved` has its secrets filled in."""
    return adoption.made_of(wanted, resolved or wanted.definition, settings)


def test_the_same_query_is_made_of_the_same() -> None:
    """Whoever owns it, and in whatever order its definition names things."""
    turned = {"options": {"a": "2", "b": "1"}, "format": "rate"}
    assert made_of(spec(token=1)) == made_of(spec(token=9, source=turned))


@pytest.mark.parametrize(
    "other",
    [
        spec(task="u"),
        spec(sql="SELECT * FROM source"),
        spec(trigger={"processing_time": "1 second"}),
        spec(spark_conf={"spark.sql.ansi.enabled": "true"}),
        spec(reset=TaskReset(number=1, offsets="earliest")),
    ],
)
def test_what_differs_is_another_query(other: QuerySpec) -> None:
    """Its rows could be others, or go elsewhere."""
    assert made_of(other) != made_of(spec())


def test_settings_and_versions_of_workers_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A herd that is brought to another version runs all its queries by that one in the end."""
    made = made_of(spec())
    assert made_of(spec(), msgspec.structs.replace(SETTINGS, conf={})) != made
    monkeypatch.setattr(adoption, "version", lambda _: "0.0.0")
    assert made_of(spec()) != made


def test_a_checkout_that_is_not_installed_has_a_digest_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be on the path of Python only."""

    def unknown(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(adoption, "version", unknown)
    assert made_of(spec()) == made_of(spec())


def test_another_password_makes_another_query() -> None:
    """The running one would go on with the former one, wherever that leads."""
    wanted = spec()
    other = spec(sink={"format": "sql", "options": {"url": "sqlite:///y", "table": "t"}}).definition
    assert made_of(wanted, resolved=other) != made_of(wanted)


class Left:
    """A query that was left, and what is done with it in which order."""

    def __init__(self, *, knows: bool = True, is_there: bool = True, fenced: bool = False) -> None:
        self.events: list[str] = []
        self._knows, self._is_there, self._fenced = knows, is_there, fenced
        self.session: Any = self
        self.checkpoint = self.output = self
        self.spark = None

    def require(self, _reached: Any) -> None:
        self.events.append("require")
        if not self._knows:
            raise QueryError("the checkpoint does not know of it")

    def take_over(self, _trigger: Any, _at: Any) -> TakenOver | None:
        self.events.append("take over")
        handle: Any = "the handle"
        return TakenOver(handle, 7) if self._is_there else None

    def claim(self, *_: Any) -> None:
        self.events.append("claim")
        if self._fenced:
            raise FencedError("a newer owner")

    def go_on(self) -> None:
        self.events.append("go on")

    def close(self) -> None:
        self.events.append("close")


def taken(left: Left, steps: StartSteps | None = None, **more: Any) -> Any:
    """What comes of a start where that query was left."""
    wanted = spec(**more)
    asked: list[Any] = []

    def left_running(*what: Any) -> Left:
        asked.append(what)
        return left

    backend: Any = SimpleNamespace(left_running=left_running)
    resolved = Resolved(wanted.definition, ())
    query = Wanted(wanted, Owner("g", "t", 1), resolved, None, "/c/g/t", "made of this")
    found = adopted(backend, query, lambda: True, steps or StartSteps(lambda _: None))
    assert all(what[1:3] == ("/c/g/t", "made of this") for what in asked)
    return found if asked else "nobody has asked"


def test_a_query_goes_on_when_its_sink_is_claimed() -> None:
    """Not before: its next batch would be done beside the claim."""
    left = Left()
    found = taken(left)
    assert (found.handle, found.committed) == ("the handle", 7)
    assert left.events == ["take over", "claim", "go on"]


def test_a_query_that_cannot_be_had_is_started_anew() -> None:
    """Its session is let go of. If its checkpoint is not the task's, the ordinary start says so."""
    left = Left(is_there=False)
    assert taken(left) is None
    assert left.events == ["take over", "close"]
    left, reached = Left(knows=False), Reached(batch_id=3, checkpoint="c", member_id="m")
    assert taken(left, reached=reached) is None
    assert left.events == ["require", "close"]


def test_a_start_that_fails_after_all_ends_the_query() -> None:
    """It has its owner's token, and nobody would look after it."""
    left = Left(fenced=True)
    with pytest.raises(FencedError):
        taken(left)
    assert left.events == ["take over", "claim", "close"]
    steps = StartSteps(lambda _: None)
    left = Left()
    left.claim = lambda *_: steps.give_up()  # type: ignore[assignment, method-assign]
    with pytest.raises(QueryError, match="given up"):
        taken(left, steps)
    assert left.events == ["take over", "close"]


@pytest.mark.parametrize(
    "other",
    [
        {"sink": {"format": "parquet", "options": {"path": "/x"}}},
        {"source": None, "sink": None, "entrypoint": "a:b", "fenced": True},
    ],
)
def test_what_is_never_taken_over(other: dict[str, Any]) -> None:
    """Whose sink has no fence, and who may have done something beside the query."""
    assert taken(Left(), **other) == "nobody has asked"
