"""Carries word between the two groups of a transfer (protocol §5, Transfers).

Every manager has one. It looks at which transfers there are, reads those of this manager's groups, one after
the other, and tells these groups what their peers have stored; what follows from that is theirs to say
(`manager.core.tasks.transfers`). It remembers nothing: whichever manager takes a group over, its driver goes
on, and word that was told before, or that is no longer true, does no harm.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from manager.background.supervision import Loop
from manager.core.transfer_commands import AdvanceTransfer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from manager.core.stored_rows import TransferRow
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from manager.runtime.routing import GroupRouting
    from manager.storage.transfer_table import TransferTable

IDLE_S: Final = 1.0
"""Between two looks while there is no transfer; whoever begins one here has it looked at at once."""
BUSY_S: Final = 0.1
"""Between two looks while there is one."""


class TransferDriver:
    """A context manager: drives the transfers of this manager's groups as long as it is entered."""

    def __init__(self, runtime: CoordinatorRuntime, routing: GroupRouting, table: TransferTable) -> None:
        self._runtime = runtime
        self._routing = routing
        self._table = table
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
        self._wanted.clear()
        if not await self.look():
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._wanted.wait()

    async def look(self) -> int:
        """Tell the groups of this manager once what their peers have stored.

        Returns:
            How many transfers are under way, whichever managers have their groups.

        Raises:
            StorageError: what is stored cannot be read.
        """
        active = await self._table.active()
        for transfer, groups in active.items():
            if ours := [group for group in sorted(groups) if self._routing.serves(group)]:
                await self._tell(transfer, ours, await self._table.rows(transfer))
        return len(active)

    async def _tell(self, transfer: str, groups: Sequence[str], rows: Sequence[TransferRow]) -> None:
        """Groups that are on their way here, or away, are told by whoever has them then."""
        for group in groups if rows else ():
            peers = tuple(row for row in rows if row.group != group)
            await self._runtime.ask(group, AdvanceTransfer(transfer=transfer, peers=peers))
