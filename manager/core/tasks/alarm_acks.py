"""Somebody has seen an alarm: it is not told again before its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks
from protocol.messages.alarms import AcknowledgeResponse

if TYPE_CHECKING:
    from manager.core.commands import AcknowledgeAlarms
    from manager.core.member import Parked
    from manager.core.turn import Turn


def acknowledge(turn: Turn, request: AcknowledgeAlarms, parked: Parked) -> None:
    """Note who has seen what fires of a rule, of one subject or of all; the first one who did stays."""
    checks.known(turn.group)
    rows = [
        row
        for key, row in turn.group.alarms.firing.items()
        if key.rule == request.rule and request.subject in {None, key.subject} and not row.acknowledged_at_ms
    ]
    for row in rows:
        turn.update(row, acknowledged_by=request.by, acknowledged_at_ms=max(turn.instant.wall, 1))
    turn.answer(parked, AcknowledgeResponse(acknowledged=len(rows)))
