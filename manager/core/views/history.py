"""What is remembered of tasks, as it is shown (docs/console.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks
from manager.core.tasks.figures import INTERVAL_MS
from manager.core.views.tasks import find
from protocol.messages.history import MovesResponse, TaskHistoryResponse

if TYPE_CHECKING:
    from manager.core.commands import GetTaskHistory, ListMoves
    from manager.core.parked import Parked
    from manager.core.turn import Turn


def of_task(turn: Turn, request: GetTaskHistory, parked: Parked) -> None:
    """Answer with the last hour of one task, and its story."""
    task = find(turn.group, request.task).task
    herd = turn.group.herd
    progress = herd.progress.get(task)
    turn.answer(
        parked,
        TaskHistoryResponse(
            task=task,
            since_ms=herd.chronicle.since_ms,
            interval_ms=INTERVAL_MS,
            points=tuple(progress.figures.points(turn.instant.wall)) if progress is not None else (),
            story=tuple(herd.chronicle.story_of(task)),
        ),
    )


def of_moves(turn: Turn, _: ListMoves, parked: Parked) -> None:
    """Answer with the latest moves of all tasks."""
    checks.known(turn.group)
    chronicle = turn.group.herd.chronicle
    turn.answer(parked, MovesResponse(since_ms=chronicle.since_ms, moves=tuple(chronicle.moves)))
