"""A process whose Spark comes up before the task is granted."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from tests.contracts.query_engine import made_ready
from tests.integration.spark.isolation.conftest import jvm_below, jvm_of, left_of, until_batch
from worker.isolation.prepared import PreparedProcess
from worker.query_engine import ignore_step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.isolation.engine import IsolatedEngine
    from worker.query_engine import QuerySpec

SOURCE = {"format": "rate", "options": {"rowsPerSecond": 5}}
PATIENCE_S = 240.0


def written(folder: Path) -> list[Path]:
    """What there is of sink and checkpoint."""
    return list(folder.iterdir())


async def prepared_process(engine: IsolatedEngine, spec: QuerySpec) -> PreparedProcess:
    """One whose Spark is up."""
    prepared = await made_ready(engine, spec)
    assert isinstance(prepared, PreparedProcess)
    await prepared.query.until_up(PATIENCE_S, ignore_step)
    assert not prepared.query.is_over
    return prepared


async def test_nothing_is_written_before_the_start_and_the_start_is_in_that_jvm(
    isolated: IsolatedEngine, spec: Callable[..., QuerySpec], database: Any, tmp_path: Path
) -> None:
    """No checkpoint, no sink, no fence; then its batches are written under the token of the grant."""
    wanted = spec("t", 7, source=SOURCE, sink=database.sink("t"))
    prepared = await prepared_process(isolated, wanted)
    jvm = jvm_below(prepared.query.process.pid)
    assert written(tmp_path) == []
    query = await isolated.start(wanted, prepared=prepared)
    assert jvm_of(query) == jvm
    await until_batch(query, 0)
    await query.stop(PATIENCE_S)
    assert await query.ended() is None


async def test_what_was_prepared_in_vain_leaves_nothing(
    isolated: IsolatedEngine, spec: Callable[..., QuerySpec], database: Any
) -> None:
    """Its Spark is let go of in order."""
    prepared = await prepared_process(isolated, spec("t", 1, source=SOURCE, sink=database.sink("t")))
    prepared.discard()
    assert (await prepared.query.process.exited).code == 0
    assert left_of(prepared.query.process.pid) == []


async def test_a_start_does_without_a_jvm_that_has_died(
    isolated: IsolatedEngine, spec: Callable[..., QuerySpec], database: Any
) -> None:
    """The process ends with it, and the task has another one."""
    wanted = spec("t", 1, source=SOURCE, sink=database.sink("t"))
    prepared = await prepared_process(isolated, wanted)
    os.kill(jvm_below(prepared.query.process.pid), signal.SIGKILL)
    await prepared.query.process_over
    query = await isolated.start(wanted, prepared=prepared)
    assert query is not prepared.query
    await until_batch(query, 0)
