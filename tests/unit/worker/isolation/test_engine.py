"""The engine over processes, with another program in them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from definition.document import parse_definition
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import PATIENCE_S, eventually, settle
from worker.isolation import process as process_module
from worker.isolation import query as query_module
from worker.isolation.engine import IsolatedEngine
from worker.query_engine import QueryError, QuerySpec, UpcomingQuery, ignore_step
from worker.spark.engine import CLOSED
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from worker.isolation.prepared import PreparedProcess
    from worker.isolation.process import TaskProcess

ROOT = Path(__file__).parents[4]
SERVING = f"""
import socket, sys
sys.path.insert(0, {str(ROOT)!r})
from worker.isolation.bootstrap import paths_from
worker = socket.socket(fileno=int(sys.argv[1]))
sys.path[:] = paths_from(worker)
from tests.fakes.query_engine import FakeEngine
from worker.isolation import child
child.SparkEngine = lambda settings, may_write: FakeEngine()
sys.exit(child.run(worker))
"""
"""The process of a task, but for its Spark."""

DEFINITION = parse_definition(
    b'{"source": {"format": "rate"}, "sql": "SELECT * FROM source", "sink": {"format": "console"}}'
)
SPEC = QuerySpec("g", "t", 1, DEFINITION, None, None)
UPCOMING = UpcomingQuery("g", "t", DEFINITION)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TaskProcess]:
    """The processes of the test; they say nothing, and end when they are killed."""
    path = tmp_path / "program.py"
    path.write_text("import signal; signal.pause()")
    monkeypatch.setattr(process_module, "PROGRAM", path)
    monkeypatch.setattr(query_module, "CUT_S", 0.0)
    return []


@pytest.fixture
def serving(begun: list[TaskProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TaskProcess]:
    """The processes of the test; they do all but run Spark."""
    (tmp_path / "program.py").write_text(SERVING)
    monkeypatch.setattr(query_module, "CUT_S", PATIENCE_S)
    return begun


async def until_up(prepared: PreparedProcess | None) -> PreparedProcess:
    """Wait until the process that was prepared has its Spark."""
    assert prepared is not None
    await prepared.query.until_up(PATIENCE_S, ignore_step)
    assert not prepared.query.is_over
    return prepared


def engine_noting(begun: list[TaskProcess], **conf: str) -> IsolatedEngine:
    """An engine that is open, but for its processes."""
    settings = SparkSettings(app_name="a", checkpoint_root="/nowhere", conf=conf)
    engine = IsolatedEngine(settings, lambda: True, None, lambda *_: FakeEngine())
    keep = engine._keep

    def note(process: TaskProcess) -> None:
        begun.append(process)
        keep(process)

    engine._keep = note  # type: ignore[method-assign]
    return engine


async def test_a_start_that_its_close_did_not_see_ends_as_well(begun: list[TaskProcess]) -> None:
    """The process is there, and its query not yet."""
    engine = engine_noting(begun)
    await engine.open()
    starting = asyncio.ensure_future(engine.start(SPEC))
    await eventually(lambda: bool(begun))
    await engine.close()
    with pytest.raises(QueryError, match=CLOSED):
        await asyncio.wait_for(starting, PATIENCE_S)
    assert begun[0].exited.done()


async def test_a_process_that_cannot_be_told_what_to_run_is_not_left_behind(begun: list[TaskProcess]) -> None:
    """A setting may have what is no text, as from a command line of another encoding."""
    engine = engine_noting(begun, **{"spark.x": "\udcff"})
    await engine.open()
    with pytest.raises(UnicodeEncodeError):
        await engine.start(SPEC)
    await asyncio.wait_for(begun[0].exited, PATIENCE_S)
    await engine.close()


async def test_a_start_takes_the_process_that_was_prepared(serving: list[TaskProcess]) -> None:
    """It is told what to run, under which token, only then; who waits hears what had been waited for."""
    engine = engine_noting(serving)
    await engine.open()
    prepared = await until_up(await engine.prepare(UPCOMING))
    steps: list[str] = []
    query = await engine.start(SPEC, steps.append, prepared)
    assert (query.spec, query.process, len(serving)) == (SPEC, serving[0], 1)
    assert steps == ["Spark, in a JVM of its own"]
    await query.stop(PATIENCE_S)
    assert await query.ended() is None
    await engine.close()


async def test_a_start_does_without_a_process_that_has_died(serving: list[TaskProcess]) -> None:
    """What is wrong with the task, another one says."""
    engine = engine_noting(serving)
    await engine.open()
    prepared = await until_up(await engine.prepare(UPCOMING))
    serving[0].kill()
    await prepared.query.process_over
    query = await engine.start(SPEC, prepared=prepared)
    assert (query.process, len(serving)) == (serving[1], 2)
    await engine.close()


async def test_a_start_that_is_given_up_leaves_no_prepared_process(begun: list[TaskProcess]) -> None:
    """It is the start's from its first moment on."""
    engine = engine_noting(begun)
    await engine.open()
    starting = asyncio.ensure_future(engine.start(SPEC, prepared=await engine.prepare(UPCOMING)))
    await settle()
    starting.cancel()
    await asyncio.wait({starting})
    assert begun[0].exited.done()
    await engine.close()


async def test_a_process_that_was_prepared_in_vain_ends_in_order(serving: list[TaskProcess]) -> None:
    """With its Spark, so that nothing of it is left on the disk."""
    engine = engine_noting(serving)
    await engine.open()
    prepared = await until_up(await engine.prepare(UPCOMING))
    prepared.discard()
    assert (await asyncio.wait_for(serving[0].exited, PATIENCE_S)).code == 0
    await engine.close()


async def test_a_prepared_process_ends_with_its_engine(begun: list[TaskProcess]) -> None:
    """Nobody else would end it."""
    engine = engine_noting(begun)
    await engine.open()
    await engine.prepare(UPCOMING)
    await engine.close()
    assert begun[0].exited.done()
    with pytest.raises(QueryError, match="Spark is not running"):
        await engine.prepare(UPCOMING)


async def test_no_more_is_prepared_than_is_started_at_once(begun: list[TaskProcess]) -> None:
    """A start waits for none of them: there is room for as many again."""
    engine = engine_noting(begun)
    await engine.open()
    prepared = [await engine.prepare(UPCOMING) for _ in range(engine.prepares + 1)]
    assert prepared[-1] is None
    assert None not in prepared[:-1]
    starting = asyncio.ensure_future(engine.start(SPEC))
    await eventually(lambda: len(begun) == engine.prepares + 1)
    await engine.close()
    await asyncio.wait({starting})
    assert isinstance(starting.exception(), QueryError)
