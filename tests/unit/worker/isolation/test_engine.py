"""The engine over processes, with another program in them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from definition.document import parse_definition
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import PATIENCE_S, eventually
from worker.isolation import process as process_module
from worker.isolation import query as query_module
from worker.isolation.engine import IsolatedEngine
from worker.query_engine import QueryError, QuerySpec
from worker.spark.engine import CLOSED
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pathlib import Path

    from worker.isolation.process import TaskProcess

DEFINITION = parse_definition(
    b'{"source": {"format": "rate"}, "sql": "SELECT * FROM source", "sink": {"format": "console"}}'
)
SPEC = QuerySpec("g", "t", 1, DEFINITION, None, None)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TaskProcess]:
    """The processes of the test; they say nothing, and end when they are killed."""
    path = tmp_path / "program.py"
    path.write_text("import signal; signal.pause()")
    monkeypatch.setattr(process_module, "PROGRAM", path)
    monkeypatch.setattr(query_module, "CUT_S", 0.0)
    return []


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
