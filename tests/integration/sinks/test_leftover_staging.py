"""What a try at a batch leaves in staging when it fails or dies, and who clears it up."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from worker.sinks import sql
from worker.sinks.base import Field
from worker.sinks.fence_table import FenceTable
from worker.sinks.staging_postgres import PostgresStage, PostgresStaging
from worker.sinks.staging_sqlite import SqliteStage, SqliteStaging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from worker.sinks.parts import Part, Take
    from worker.sinks.sql import SqlSink

    MakeSink = Callable[..., SqlSink]

CORRECTED = (Field("carrier", "string"), Field("origin", "string"), Field("delay", "double"))
ROWS = [("UA", 1.0)] * 9
CORRECTED_ROWS = [("UA", "EWR", 1.0)] * 9


STEPS: dict[str, list[tuple[object, str]]] = {
    "before the area is made": [(SqliteStage, "put"), (PostgresStage, "put")],
    "before rows are in it": [(SqliteStage, "_insert"), (PostgresStage, "_copy")],
    "before the transaction": [(sql.SqlSink, "_put")],
    "inside the transaction": [(FenceTable, "move")],
    "after the transaction": [],
}


class KilledError(BaseException):
    """The process is gone, and nothing of it is done any more."""


@pytest.fixture(autouse=True)
def all_is_staged(monkeypatch: pytest.MonkeyPatch, batch: Any) -> None:
    """However few the rows."""
    monkeypatch.setattr(batch, "collects", False)
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


@pytest.fixture
def dying_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AbstractContextManager[None]]:
    """Has a try at a batch end at a step, without any clearing up: as by SIGKILL."""

    def killed(*_: Any) -> None:
        raise KilledError

    @contextmanager
    def dying(step: str) -> Iterator[None]:
        places = [*STEPS[step], (SqliteStaging, "dispose"), (PostgresStaging, "dispose")]
        with monkeypatch.context() as patch:
            for kind, name in places:
                patch.setattr(kind, name, killed)
            yield

    return dying


@pytest.mark.parametrize("token", [1, 2], ids=["same owner", "next owner"])
@pytest.mark.parametrize("step", STEPS)
def test_a_corrected_query_runs_whatever_step_the_first_one_died_at(
    *, step: str, token: int, make_sink: MakeSink, batch: Any, peek: Any, dying_at: Any
) -> None:
    """Its columns are others, its task, token and batch the same; what the dead try staged is gone then."""
    sink = make_sink(1)
    with dying_at(step), pytest.raises(KilledError):
        sink.write(batch(0, ROWS))
    corrected = make_sink(token, CORRECTED, table="corrected")
    leftovers = peek.leftovers()
    is_there = step == "after the transaction"
    assert corrected.write(batch(0, CORRECTED_ROWS)).duplicate is is_there
    assert corrected.write(batch(1, CORRECTED_ROWS)).rows == 9
    assert peek("SELECT count(*) FROM corrected") == [(9 if is_there else 18,)]
    assert leftovers == peek.leftovers() == []


@pytest.mark.parametrize("token", [1, 2], ids=["same owner", "next owner"])
def test_a_straggler_of_the_first_query_is_in_nobodys_way(
    token: int, make_sink: MakeSink, batch: Any, peek: Any
) -> None:
    """An attempt that goes on after its query has failed stages in an area of its own, to the end."""
    late = batch(0, ROWS)
    stage = []

    def fail() -> None:
        raise RuntimeError("the query failed")

    late.before_return = fail
    scatter = late.scatter

    def remembered(take: Take) -> list[Part]:
        stage.append(take.stage)
        parts: list[Part] = scatter(take)
        return parts

    late.scatter = remembered
    with pytest.raises(RuntimeError, match="the query failed"):
        make_sink(1).write(late)
    corrected = make_sink(token, CORRECTED, table="corrected")
    beside = batch(0, CORRECTED_ROWS)
    beside.before_computing = lambda: stage[0].put(0, 99, iter([ROWS]))
    assert corrected.write(beside).rows == 9
    make_sink(token, CORRECTED, table="corrected")
    assert peek.leftovers() == []


def test_a_batch_that_fails_leaves_nothing(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Not even until the next claim: the disk may be full of it."""
    sink = make_sink(1)

    def fail() -> None:
        raise RuntimeError("the query failed")

    failing = batch(0, ROWS)
    failing.before_return = fail
    with pytest.raises(RuntimeError, match="the query failed"):
        sink.write(failing)
    assert peek.leftovers() == []
    twice = batch(0, ROWS)
    twice.before_return = lambda: make_sink(1).write(batch(0, ROWS))
    assert sink.write(twice).duplicate
    assert peek.leftovers() == []


def test_what_somebody_else_has_put_beside_it_stays(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """A name that looks like a staging area's, but is none, does not keep the task from starting."""
    sink = make_sink(1)
    digest = sink._owner.digest
    if peek.engine.dialect.name == "sqlite":
        sink.write(batch(0, ROWS))
        strange = Path(f"{peek.engine.url.database}-sparkherd") / f"{digest}_mine_too.db"
        strange.touch()
    else:
        peek.run(f"CREATE TABLE sparkherd_stage_{digest}_mine_too (a int)")
    make_sink(2)
    assert len(peek.leftovers()) == 1
