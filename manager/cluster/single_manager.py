"""The only manager of a database: whoever holds the lock beside its file has every slot, without a lease."""

from __future__ import annotations

import asyncio
import fcntl
import os
from typing import TYPE_CHECKING

from manager.cluster.held_slots import SlotState
from protocol.errors import StartupError

if TYPE_CHECKING:
    from pathlib import Path

    from manager.cluster.held_slots import HeldSlots
    from manager.cluster.slot_routing import SlotRouting
    from manager.runtime.slot_loader import SlotLoader
    from manager.storage.lease_table import LeaseTable


class ProcessLock:
    """A lock that ends with the process that has it, however that ends: the kernel lets go of it.

    It is beside the database's file, not on it: closing a second descriptor of that one would undo SQLite's
    own locks.
    """

    def __init__(self, database: Path) -> None:
        """Take it.

        Raises:
            StartupError: another manager has it, or it cannot be had at all.
        """
        path = database.with_name(f"{database.name}.lock")
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StartupError(
                f"--database: another manager uses {database}; several managers need PostgreSQL"
            ) from error
        except OSError as error:
            raise StartupError(f"--database: {path}: {error.strerror}") from error

    def release(self) -> None:
        """Let another manager in."""
        os.close(self._descriptor)


class SingleManager:
    """`SlotController` of a manager that knows that there is no other; the lock is its proof."""

    def __init__(
        self, held_slots: HeldSlots, table: LeaseTable, routing: SlotRouting, loader: SlotLoader
    ) -> None:
        self.deposed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._held_slots = held_slots
        self._table = table
        self._routing = routing
        self._loader = loader

    async def start(self) -> None:
        """Take every slot, and load it.

        Raises:
            StorageError: the database cannot be read or written.
        """
        self._held_slots.took(await self._table.seize(self._held_slots.me), self._held_slots.term)
        slots = self._held_slots.in_state(SlotState.LOADING)
        await self._loader.load(slots)
        self._routing.loaded(slots)

    async def stop(self) -> None:
        """Nobody is there to take over."""
