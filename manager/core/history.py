"""The group's rebalances, as people are shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.group import HISTORY_LENGTH, Round
from manager.core.rows import RebalanceRow

if TYPE_CHECKING:
    from manager.core.turn import Turn

MAX_REASON_LENGTH = 255


def open_round(turn: Turn, reason: str) -> None:
    """A rebalance begins, for `reason` (cut at 255 characters, KIP-800)."""
    group = turn.group
    reason = reason[:MAX_REASON_LENGTH]
    turn.note(f"rebalance: {reason}")
    group.round = Round(reason, turn.now, turn.instant.wall, dict(group.herd.assigned))


def close_round(turn: Turn) -> None:
    """The rebalance under way came to its end: an assignment, an empty group, or the next rebalance."""
    group = turn.group
    closing, group.round = group.round, None
    if closing is None:
        return
    if len(group.history) == HISTORY_LENGTH:
        turn.drop(group.history[0])
    turn.put(
        RebalanceRow(
            group=group.name,
            generation_id=group.generation,
            reason=closing.reason,
            started_at_ms=closing.started_at_ms,
            duration_ms=turn.now - closing.started_at,
            members=len(group.members),
            moved=_count_moved(closing.before, group.herd.assigned),
        )
    )


def _count_moved(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(1 for task, member in after.items() if before.get(task, member) != member)
