"""A transfer as it is shown: made of the rows of the group that the tasks leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.messages.transfers import TransferredTask
from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.stored_rows import TransferRow

IN_ORDER: Final = tuple(TransferStep)


def transfer_fields(rows: Sequence[TransferRow]) -> dict[str, Any]:
    """The fields of a `Transfer`; `rows` are all that the group has of one, at least one."""
    first = rows[0]
    return {
        "id": first.transfer,
        "source": first.group,
        "target": first.peer_group,
        "step": min((row.step for row in rows), key=IN_ORDER.index),
        "started_at_ms": first.started_at_ms,
        "changed_at_ms": max(row.changed_at_ms for row in rows),
        "by": first.by,
        "cause": next((row.cause for row in rows if row.cause is not None), None),
        "tasks": tuple(
            TransferredTask(task=row.task, to_task=row.peer_task, step=row.step)
            for row in sorted(rows, key=lambda row: row.task)
        ),
    }
