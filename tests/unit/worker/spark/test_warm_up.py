"""Warming Spark before the worker joins: what is run, and that nothing keeps the worker from joining."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from tests.fakes.query_engine import FakeQuery
from tests.fakes.turns import until
from worker.host import _spark_settings
from worker.settings import WorkerSettings
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings
from worker.spark.warm_up import _left_behind, warm_up

if TYPE_CHECKING:
    from tests.fakes.spark_backend import FakeBackend
    from worker.query_engine import QuerySpec

SETTINGS = SparkSettings(app_name="tests", checkpoint_root="/shared", warm_up_s=60)


class Engine:
    """Starts queries that come to their end at once: in order, for `cause`, or never if they `hang`."""

    def __init__(self, *, cause: str | None = None, hang: bool = False) -> None:
        self.specs: list[QuerySpec] = []
        self.queries: list[FakeQuery] = []
        self.roots: list[str] = []
        self._cause = cause
        self._hang = hang

    async def start(self, spec: QuerySpec, settings: SparkSettings) -> FakeQuery:
        """As the engine does."""
        self.specs.append(spec)
        self.roots.append(settings.root)
        assert Path(settings.root.removeprefix("file:")).parent.is_dir()
        self.queries.append(query := FakeQuery(spec, stops_slowly=False))
        if not self._hang:
            query.end(self._cause)
        return query


async def test_a_small_query_is_run_and_run_again() -> None:
    """As a task that moves: from the same checkpoint, under a higher token; nothing of it is left."""
    engine = Engine()
    with capture_logs() as logs:
        await warm_up(engine.start, SETTINGS)
    assert [spec.token for spec in engine.specs] == [1, 2]
    assert len({(spec.group, spec.task) for spec in engine.specs}) == 1
    assert [line["event"] for line in logs] == ["spark is warm"]
    (root,) = set(engine.roots)
    assert root.startswith("file:/")
    assert not Path(root.removeprefix("file:")).parent.exists()


@pytest.mark.parametrize(("master", "counts"), [("local[2]", True), ("spark://host:7077", False)])
async def test_state_is_kept_on_this_machine_only(master: str, counts: bool) -> None:  # noqa: FBT001
    """Executors elsewhere would not find it again."""
    engine = Engine()
    await warm_up(engine.start, structs.replace(SETTINGS, master=master))
    assert all(("COUNT(*)" in (spec.definition.sql or "")) is counts for spec in engine.specs)


async def test_a_query_that_fails_is_told_and_keeps_nobody() -> None:
    """A Spark that cannot run it may run others."""
    engine = Engine(cause="no disk")
    with capture_logs() as logs:
        await warm_up(engine.start, SETTINGS)
    assert [(line["log_level"], line["why"]) for line in logs] == [("warning", "no disk")]


async def test_a_query_that_takes_too_long_is_ended() -> None:
    """The worker joins all the same."""
    engine = Engine(hang=True)
    with capture_logs() as logs:
        await warm_up(engine.start, structs.replace(SETTINGS, warm_up_s=0.01))
    assert [line["event"] for line in logs] == ["spark is not warm yet, the first queries are slower"]
    assert [query.stops for query in engine.queries] == [[0]]


async def test_a_start_that_takes_too_long_is_given_up() -> None:
    """By cancelling it, as any start."""
    given_up = asyncio.Event()

    async def start(spec: QuerySpec, settings: SparkSettings) -> FakeQuery:
        del spec, settings
        try:
            return await asyncio.Future()
        finally:
            given_up.set()

    await warm_up(start, structs.replace(SETTINGS, warm_up_s=0.01))
    assert given_up.is_set()


async def test_a_start_that_cannot_be_given_up_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark has been asked to run it, and does not answer."""
    monkeypatch.setattr("worker.spark.warm_up.STOP_S", 0.01)
    answered = asyncio.Event()

    async def start(spec: QuerySpec, settings: SparkSettings) -> FakeQuery:
        del spec, settings
        try:
            return await asyncio.Future()
        finally:
            await asyncio.shield(answered.wait())

    await warm_up(start, structs.replace(SETTINGS, warm_up_s=0.01))
    assert len(_left_behind) == 1
    answered.set()
    await until(lambda: not _left_behind)


@pytest.mark.parametrize("warm_up_s", [0, 60])
async def test_an_engine_warms_up_when_its_settings_say_so(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, warm_up_s: float
) -> None:
    """When its Spark is up, and before it is open."""
    warmed: list[SparkSettings] = []

    async def note(_start: object, settings: SparkSettings) -> None:
        warmed.append(settings)

    monkeypatch.setattr("worker.spark.engine.warm_up", note)
    engine = SparkEngine(structs.replace(SETTINGS, warm_up_s=warm_up_s), lambda: True)
    await engine.open()
    assert len(warmed) == bool(warm_up_s)
    await engine.close()
    assert backend.is_closed


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 60),
        ({"warm_up_timeout_ms": 5000}, 5),
        ({"warm_up_timeout_ms": 0}, 0),
        ({"isolate": True}, 0),
        ({"instance_id": "anna-1"}, 0),
        ({"spark_remote": "sc://host:15002"}, 0),
    ],
)
def test_what_is_warmed_is_where_tasks_run(given: dict[str, object], seconds: float) -> None:
    """No JVM that only answers questions, no server that is there already, and none that is waited for."""
    settings = WorkerSettings(group="g", **given)  # type: ignore[arg-type]
    assert settings.warm_up_s == seconds
    assert _spark_settings(settings, ()).warm_up_s == seconds
