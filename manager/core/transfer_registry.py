"""The transfers that one group takes part in: those under way, and what became of the latest ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.stored_rows import TransferRow

KEPT: Final = 100
"""Transfers that are over and that a group remembers."""


@dataclass(slots=True)
class TransferRegistry:
    """Rows by transfer and task; `moving` has the transfer that each task is under.

    A task whose name another transfer was REFUSED is not under that one, and may be under one of its own.
    """

    by_id: dict[str, dict[str, TransferRow]] = field(default_factory=dict)
    moving: dict[str, str] = field(default_factory=dict)

    def of(self, transfer: str) -> tuple[TransferRow, ...]:
        """The rows of one transfer, in the order in which its tasks were named."""
        return tuple(self.by_id.get(transfer, {}).values())

    def is_packed(self, task: str) -> bool:
        """Whether `task` is between two groups, so that nobody here is granted it any more, or yet."""
        row = self.by_id.get(self.moving.get(task, ""), {}).get(task)
        return row is not None and row.step not in {TransferStep.STOPPING, TransferStep.STARTED}

    def leaving(self) -> list[TransferRow]:
        """The rows of tasks on their way out; it takes the longer the more of these there are."""
        under_way = (self.by_id[transfer][task] for task, transfer in self.moving.items())
        return [row for row in under_way if row.leaves]

    def keep(self, row: TransferRow) -> None:
        """Take `row` in."""
        self.by_id.setdefault(row.transfer, {})[row.task] = row
        if row.step is TransferStep.REFUSED:
            return
        if not row.is_over:
            self.moving[row.task] = row.transfer
        elif self.moving.get(row.task) == row.transfer:
            del self.moving[row.task]

    def drop(self, transfer: str, task: str) -> None:
        """Forget the row of that key."""
        rows = self.by_id.get(transfer, {})
        row = rows.pop(task, None)
        if not rows:
            self.by_id.pop(transfer, None)
        if row is not None and self.moving.get(task) == transfer and row.step is not TransferStep.REFUSED:
            del self.moving[task]

    def rows(self) -> Iterator[TransferRow]:
        """All there are."""
        return (row for rows in self.by_id.values() for row in rows.values())

    def too_old(self) -> tuple[TransferRow, ...]:
        """The rows of transfers that are over, but for the latest ones."""
        over = [rows for rows in map(tuple, map(dict.values, self.by_id.values())) if rows[0].is_over]
        over.sort(key=lambda rows: rows[0].changed_at_ms)
        return tuple(row for rows in over[: max(len(over) - KEPT, 0)] for row in rows)
