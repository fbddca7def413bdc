"""Carries word between the two groups of a transfer: the real rules of patience, on a store of ours."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from manager.core.member import Connection
from manager.core.transfer_commands import AdvanceTransfer
from manager.runtime.transfer_patience import TransferPatience
from manager.storage.transfer_table import Standing
from tests.simulation.manager import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manager.core.stored_rows import TransferRow
    from tests.simulation.manager import SimManager

LOOK_EVERY_MS = 100
LATE_MS = (0, 4000)
"""When word that is told twice comes again; longer than any lease."""


class SimCarrier:
    """Of one life of a manager, as `manager.runtime.transfer_driver`."""

    def __init__(self, manager: SimManager) -> None:
        self._manager = manager
        self._patience = TransferPatience()
        self._look()

    def _look(self) -> None:
        store, now = self._manager.cluster.store, self._manager.mono / 1000
        if not store.is_down:
            active = store.active_transfers()
            seen = {transfer: self._seen(rows) for transfer, rows in active.items()}
            ours = {transfer: each for transfer, each in seen.items() if each[1]}
            for transfer in self._patience.due(ours, now):
                is_full = seen[transfer][0].is_to_be_unpacked
                self._soon(partial(self._read, transfer, is_full=is_full))
                self._patience.carried(transfer, seen[transfer], now)
        self._manager.later(LOOK_EVERY_MS, self._look)

    def _seen(self, rows: Sequence[TransferRow]) -> tuple[Standing, frozenset[str]]:
        groups = frozenset(_groups(rows))
        steps = Counter((row.group, row.leaves, row.step.value) for row in rows)
        standing = Standing(groups, frozenset((*each, count) for each, count in steps.items()))
        return standing, frozenset(filter(self._manager.leases.serves, groups))

    def _soon(self, action: Callable[[], None]) -> None:
        self._manager.later(self._manager.some_time(slowness=0.2), action)

    def _read(self, transfer: str, *, is_full: bool) -> None:
        """What it was packed as is read where it was to be unpacked when the driver looked.

        It may have changed since, and gets here a while later, and now and then once more.
        """
        manager = self._manager
        rows = manager.cluster.store.transfer(transfer)
        if not is_full:
            rows = tuple(msgspec.structs.replace(row, parcel=None) for row in rows)
        tell = partial(self._tell, transfer, rows)
        self._soon(tell)
        if manager.world.happens(manager.weather.twice):
            manager.later(manager.world.some(*LATE_MS), tell)

    def _tell(self, transfer: str, rows: Sequence[TransferRow]) -> None:
        manager = self._manager
        for group in filter(manager.leases.serves, _groups(rows)):
            peers = tuple(row for row in rows if row.group != group)
            request = AdvanceTransfer(transfer=transfer, peers=peers)
            manager.world.note(f"manager {manager.number}", (group, request))
            manager.receive(Asked(group, request, manager.world.now, lambda _: None, Connection("sim")))


def _groups(rows: Sequence[TransferRow]) -> list[str]:
    return sorted({name for row in rows for name in (row.group, row.peer_group)})
