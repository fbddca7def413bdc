"""What the chaos run starts as a worker: `sparkherd`, with a place where the stage can hold a batch.

A script, to be run in place of `sparkherd`. Its first argument says whether the fence is on; off is the
control run, where the SQL sink lets everybody write, and which must show what the fence prevents. No setting
of the product does either. To the Delta sink the stage's log store is as good as the one that it extends.
"""

from __future__ import annotations

import fcntl
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import structlog

from cli.main import main
from worker.sinks.fence import FenceRow, Verdict
from worker.sinks.fence_table import FenceTable
from worker.sinks.quarantine.elsewhere import QuarantinedSink
from worker.sinks.quarantine.sql_replay import SqlReplay
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection, Engine

    from worker.sinks.aside import Aside
    from worker.sinks.base import Batch, Lookable, Written
    from worker.sinks.fence import Mark, Owner
    from worker.sinks.parts import Part, Rows
    from worker.sinks.quarantine.store import StoredRow
    from worker.sinks.sql_target import SqlTarget

    Move = Callable[[SqlReplay, Sequence[StoredRow], Rows], None]
    Write = Callable[[QuarantinedSink, Batch], Written]
    PutAside = Callable[[QuarantinedSink, Sequence[Aside], Lookable, Mark], None]
    Put = Callable[[SqlSink, SqlTarget, FenceTable, Batch, Sequence[Part]], Written]

FENCED, UNFENCED = "fenced", "unfenced"
HELD = "batch held"
LOG_STORE = "sparkherd.chaos.HeldLogStore"
PUT = "held batch written"
OVER = "held batch over"

log = structlog.get_logger(__name__)


def replay_of(task: str) -> str:
    """What a task's replays are called, where they are held and in the log."""
    return f"{task}~replay"


def hold_of(folder: Path, task: str) -> Path:
    """The file whose lock holds the task's batches, as long as it is there."""
    return folder / f"{task}.hold"


def _holding(put: Put) -> Put:
    """`SqlSink._put` is where a batch has passed all checks of the lease and holds no lock in the database.

    A worker that freezes there does not look at a clock again before it writes.
    """

    def held(
        sink: SqlSink, target: SqlTarget, fence: FenceTable, batch: Batch, parts: Sequence[Part]
    ) -> Written:
        task = sink._owner.task
        was_held = _wait(task, batch.mark.batch_id)
        written = put(sink, target, fence, batch, parts)
        if was_held:
            log.warning(PUT, task=task, batch=batch.mark.batch_id)
        return written

    return held


def _wait(task: str, batch: int) -> bool:
    """As long as the task's batches are to be held; returns whether they were."""
    hold = hold_of(Path.cwd(), task)
    if not hold.exists():
        return False
    with hold.open() as file:
        log.warning(HELD, task=task, batch=batch)
        fcntl.flock(file, fcntl.LOCK_SH)
    return True


def _holding_between(put: PutAside, held_in: set[tuple[str, int]]) -> PutAside:
    """`QuarantinedSink._put` ends where the bad rows of a batch are put aside, and the others not written."""

    def held(sink: QuarantinedSink, aside: Sequence[Aside], batch: Lookable, mark: Mark) -> None:
        put(sink, aside, batch, mark)
        if _wait(sink._owner.task, mark.batch_id):
            held_in.add((sink._owner.task, mark.batch_id))

    return held


def _telling_end(write: Write, held_in: set[tuple[str, int]]) -> Write:
    """Nobody else tells it of a batch that comes to nothing because its query is stopped, too."""

    def told(sink: QuarantinedSink, batch: Batch) -> Written:
        try:
            return write(sink, batch)
        finally:
            if (sink._owner.task, batch.mark.batch_id) in held_in:
                log.warning(OVER, task=sink._owner.task, batch=batch.mark.batch_id)

    return told


def _holding_move(move: Move) -> Move:
    """`SqlReplay.move` takes rows that are computed from the quarantine into the sink, in a transaction."""

    def held(replay: SqlReplay, played: Sequence[StoredRow], rows: Rows) -> None:
        task = replay_of(replay._owner.task)
        was_held, told = _wait(task, len(played)), OVER
        try:
            move(replay, played, rows)
            told = PUT
        finally:
            if was_held:
                log.warning(told, task=task, batch=len(played))

    return held


def _claim_of_anybody(fence: FenceTable, connection: Connection, owner: Owner) -> FenceRow:
    """The row as it is; nobody's token is too old."""
    fence.enter(connection, owner)
    return fence.read(connection, owner) or FenceRow(owner.token)


def _admit_anything(
    _fence: FenceTable, _connection: Connection, owner: Owner, _mark: Mark
) -> tuple[Verdict, FenceRow]:
    return Verdict.WRITE, FenceRow(owner.token)


def _spare_older_sessions(_engine: Engine, _owner: Owner) -> None:
    """A frozen one keeps its transaction."""


def _never_back(move: Callable[..., None]) -> Callable[..., None]:
    """A zombie's batch leaves the row as it is: the next owner would refuse a checkpoint ahead of it."""

    def moved(fence: FenceTable, connection: Connection, owner: Owner, mark: Mark, rows: int) -> None:
        stored = fence.read(connection, owner)
        if stored is None or stored.last is None or stored.last.batch_id < mark.batch_id:
            move(fence, connection, owner, mark, rows)

    return moved


def _run(fence: str) -> None:
    with ExitStack() as stack:
        stack.enter_context(patch.object(SqlSink, "_put", _holding(SqlSink._put)))
        held_in: set[tuple[str, int]] = set()
        between = _holding_between(QuarantinedSink._put, held_in)
        stack.enter_context(patch.object(QuarantinedSink, "_put", between))
        told = _telling_end(QuarantinedSink.write, held_in)
        stack.enter_context(patch.object(QuarantinedSink, "write", told))
        stack.enter_context(patch.object(SqlReplay, "move", _holding_move(SqlReplay.move)))
        stack.enter_context(patch("worker.sinks.delta.places.LINK_STORE", LOG_STORE))
        if fence == UNFENCED:
            stack.enter_context(patch.object(FenceTable, "claim", _claim_of_anybody))
            stack.enter_context(patch.object(FenceTable, "admit", _admit_anything))
            stack.enter_context(patch.object(FenceTable, "move", _never_back(FenceTable.move)))
            stack.enter_context(patch("worker.sinks.sql.end_older_sessions", _spare_older_sessions))
        main()


if __name__ == "__main__":
    _run(sys.argv.pop(1))
