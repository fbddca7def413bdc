"""Carries word between the two groups of a transfer (protocol §5, Transfers).

Every manager has one. It looks at how all transfers stand, reads those of this manager's groups that may go
on, and tells these groups what their peers have stored; what follows from that is theirs to say
(`manager.core.tasks.transfers`). All it remembers is what it has told, so as not to tell it too often
(`manager.runtime.transfer_patience`): whichever manager takes a group over, its driver goes on, and word that
was told before, or that is no longer true, does no harm.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from manager.background.supervision import Loop
from manager.core.transfer_commands import AdvanceTransfer
from manager.runtime.transfer_patience import TransferPatience

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from manager.core.stored_rows import TransferRow
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from manager.runtime.routing import GroupRouting
    from manager.storage.transfer_table import Standing, TransferTable

IDLE_S: Final = 1.0
"""Between two looks while nothing is to be done; whoever begins a transfer here has it looked at at once."""
BUSY_S: Final = 0.1
"""Between two looks while something is."""
AT_ONCE: Final = 20
"""Transfers that are read by one statement, and told their groups of together."""


class Seen(NamedTuple):
    """How a transfer stands, and which of its groups are this manager's to tell."""

    standing: Standing
    groups: frozenset[str]


class TransferDriver:
    """A context manager: drives the transfers of this manager's groups as long as it is entered."""

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        routing: GroupRouting,
        table: TransferTable,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is a monotonic clock, in seconds."""
        self._runtime = runtime
        self._routing = routing
        self._table = table
        self._now = now
        self._patience = TransferPatience()
        self._wanted = runtime.transfers_wanted
        self._loop: Loop | None = None

    async def __aenter__(self) -> Self:
        """Begin."""
        trouble = "transfers cannot be looked at, so they stand still"
        self._loop = Loop("driving transfers", self._step, BUSY_S, trouble)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; transfers stand still until another manager has the groups, or this one is back."""
        if self._loop is not None:
            await self._loop.stop()

    async def _step(self) -> None:
        """The loop itself waits as long as nothing is waited for at least."""
        self._wanted.clear()
        told = await self.look()
        rest_s = 0.0 if told else self._patience.rest_s(self._now(), BUSY_S, IDLE_S) - BUSY_S
        if rest_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._wanted.wait()

    async def look(self) -> int:
        """Tell the groups of this manager what their peers have stored, as far as that may bring them on.

        Returns:
            Of how many transfers they were told.

        Raises:
            StorageError: what is stored cannot be read.
        """
        active = await self._table.active()
        seen = {transfer: self._seen(standing) for transfer, standing in active.items()}
        ours = {transfer: each for transfer, each in seen.items() if each.groups}
        due = self._patience.due(ours, self._now())
        for start in range(0, len(due), AT_ONCE):
            await self._carry({transfer: ours[transfer] for transfer in due[start : start + AT_ONCE]})
        return len(due)

    def _seen(self, standing: Standing) -> Seen:
        return Seen(standing, frozenset(filter(self._routing.serves, standing.groups)))

    async def _carry(self, seen: Mapping[str, Seen]) -> None:
        """What is packed is read of one transfer at a time, for it has whole definitions."""
        full = [transfer for transfer, each in seen.items() if each.standing.is_to_be_unpacked]
        brief = seen.keys() - set(full)
        rows = await self._table.brief(brief) if brief else {}
        await asyncio.gather(*(self._tell(transfer, told) for transfer, told in rows.items()))
        for transfer in full:
            await self._tell(transfer, await self._table.rows(transfer))
        for transfer, each in seen.items():
            self._patience.carried(transfer, each, self._now())

    async def _tell(self, transfer: str, rows: Sequence[TransferRow]) -> None:
        """Groups that are on their way here, or away, are told by whoever has them then."""
        groups = {name: None for row in rows for name in (row.group, row.peer_group)}
        for group in sorted(filter(self._routing.serves, groups)):
            peers = tuple(row for row in rows if row.group != group)
            await self._runtime.ask(group, AdvanceTransfer(transfer=transfer, peers=peers))
