"""The storage that all managers share: one transaction at a time, fenced by epochs, failing now and then."""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from manager.core.stored_rows import CarriedHistoryRow, Dropped, GroupRow, Row, TransferRow
from protocol.messages.events import Event
from tests.simulation.lease_table import LeaseTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from manager.core.stored_rows import Change, Record
    from tests.simulation.invariants import Watch

RowKey = tuple[type[Row], tuple[Any, ...]]


class Rows(dict[RowKey, Row]):
    """The rows of one group; `deleted` tells it from former ones of its name: how many there have been.

    `carried` are the histories that tasks have come with, which are not told apart in memory any more.
    """

    def __init__(self, rows: Mapping[RowKey, Row] = MappingProxyType({})) -> None:
        super().__init__(rows)
        self.deleted = 0
        self.carried: dict[str, CarriedHistoryRow] = {}

    def copy(self) -> Rows:
        """What is there now."""
        copied = Rows(self)
        copied.deleted, copied.carried = self.deleted, dict(self.carried)
        return copied


class Store:
    """Rows by group. `is_down` refuses everything, `is_full` only writes."""

    def __init__(self, watch: Watch, slots: int) -> None:
        self.leases = LeaseTable(slots)
        self._watch = watch
        self._rows: dict[str, Rows] = {}
        self._transfers: dict[tuple[Any, ...], TransferRow] = {}
        self.is_down = self.is_full = False

    def rows(self, group: str) -> Rows:
        """What is stored of a group."""
        return self._rows.setdefault(group, Rows())

    def commit(self, changes: Mapping[str, Iterable[Record]], fence: Mapping[int, int]) -> bool:
        """All changes or none; false when none."""
        if self.is_down or self.is_full:
            return False
        if not self.leases.is_held(fence):
            return False
        for group, rows in changes.items():
            for change in rows:
                self._store(group, change)
        self._watch.whereabouts.check()
        return True

    def _store(self, group: str, change: Record) -> None:
        if isinstance(change, Event):
            self._watch.check_told(change, self.rows(group))
        else:
            self._watch.check_stored(self.rows(group), change)
            apply(self.rows(group), change)
        if isinstance(change, TransferRow):
            self._transfers[change.key] = change
        elif isinstance(change, Dropped) and change.kind is TransferRow:
            del self._transfers[change.key]

    def transfer(self, transfer: str) -> tuple[TransferRow, ...]:
        """All rows of one, whichever group has them."""
        return tuple(row for row in self._transfers.values() if row.transfer == transfer)

    def active_transfers(self) -> Mapping[str, Sequence[TransferRow]]:
        """All rows of each transfer of which one is not over."""
        by_id: defaultdict[str, list[TransferRow]] = defaultdict(list)
        for row in self._transfers.values():
            by_id[row.transfer].append(row)
        return {id_: rows for id_, rows in by_id.items() if not all(row.is_over for row in rows)}


def apply(rows: Rows, change: Change) -> None:
    """Keep or drop one row."""
    if isinstance(change, CarriedHistoryRow):
        rows.carried[change.task] = change
    elif isinstance(change, Dropped) and change.kind is CarriedHistoryRow:
        del rows.carried[change.key[-1]]
    elif isinstance(change, Dropped):
        rows.pop((change.kind, change.key), None)
        rows.deleted += change.kind is GroupRow
    else:
        rows[type(change), change.key] = change


def in_order(rows: Rows) -> list[Row]:
    """The rows as the storage gives them back: members by their positions."""
    return [*sorted(rows.values(), key=lambda row: getattr(row, "position", 0)), *rows.carried.values()]
