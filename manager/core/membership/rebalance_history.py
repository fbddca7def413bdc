"""The group's rebalances, as people are shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.group import REBALANCES_KEPT, Round
from manager.core.rows import RebalanceRow
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from manager.core.turn import Turn

MAX_REASON_LENGTH = 255


def open_round(turn: Turn, reason: str) -> None:
    """A rebalance begins, for `reason` (cut at 255 characters, KIP-800)."""
    group = turn.group
    reason = reason[:MAX_REASON_LENGTH]
    turn.note(f"rebalance: {reason}")
    group.round = Round(reason, turn.now, turn.instant.wall, dict(group.tasks.assigned))


def complete_round(turn: Turn) -> None:
    """The rebalance under way led to an assignment, or to an empty group; the outside is told."""
    line = close_round(turn)
    if line is not None:
        turn.tell(
            EventType.REBALANCE_COMPLETED,
            cause=line.reason,
            generation_id=line.generation_id,
            duration_ms=line.duration_ms,
            members=line.members,
            moved=line.moved,
        )


def close_round(turn: Turn) -> RebalanceRow | None:
    """The rebalance under way came to its end, if only because the next one begins; returns its line."""
    group = turn.group
    closing, group.round = group.round, None
    if closing is None:
        return None
    if len(group.rebalances) == REBALANCES_KEPT:
        turn.drop(group.rebalances[0])
    line = RebalanceRow(
        group=group.name,
        generation_id=group.generation,
        reason=closing.reason,
        started_at_ms=closing.started_at_ms,
        duration_ms=turn.now - closing.started_at,
        members=len(group.members),
        moved=_count_moved(closing.before, group.tasks.assigned),
    )
    turn.put(line)
    return line


def _count_moved(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(1 for task, member in after.items() if before.get(task, member) != member)
