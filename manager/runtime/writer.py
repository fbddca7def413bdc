"""The one task that talks to the storage: group commit, and taking groups up again after trouble."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from manager.runtime.commits import Commits
from manager.runtime.pending import UNAVAILABLE, deliver, deliver_instead
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manager.core.rows import Row
    from manager.core.turn import Turn
    from manager.storage.base import Storage

log = structlog.get_logger(__name__)

RETRY_S = 0.5
"""Pause before the storage is tried again after it failed to give groups back."""


class Writer:
    """Commits all that one turn of the loop produced in one transaction, then lets its answers go.

    A group whose batch failed is let go from memory by `on_lost` and taken up from storage by `on_restored`:
    trouble is a small crash of that group. `Commits` has the rules.
    """

    def __init__(
        self,
        storage: Storage,
        on_lost: Callable[[str], None],
        on_restored: Callable[[str, Iterable[Row]], None],
        on_durable: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._on_lost = on_lost
        self._on_restored = on_restored
        self._on_durable = on_durable
        self._commits = Commits()
        self._wake = asyncio.Event()
        self._stopping = False

    def take(self, turn: Turn) -> None:
        """Send the answers of `turn` when all the group's rows so far, its own included, are durable."""
        deliver(self._commits.take(turn))
        if self._commits.has_work:
            self._wake.set()

    def is_lost(self, group: str) -> bool:
        """Whether the group is out of memory and waits to be read again."""
        return self._commits.is_lost(group)

    def lose(self, group: str) -> None:
        """Forget `group` and read it again once what is on its way to the storage has arrived."""
        self._commits.lose(group)
        self._on_lost(group)
        self._wake.set()

    async def run(self) -> None:
        """Until `stop`: commit, deliver, restore."""
        while not self._stopping or self._commits.has_work:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(0)  # let this turn of the loop finish, so that its rows share a transaction
            if self._commits.has_work:
                await self._commit()
            if not self._stopping:
                await self._restore()

    def stop(self) -> None:
        """Let `run` return after what is gathered is committed."""
        self._stopping = True
        self._wake.set()

    async def _commit(self) -> None:
        batch = self._commits.begin()
        try:
            await self._storage.commit(batch.all_changes())
        except StorageError as error:
            groups = batch.groups
            log.warning("storage failed, groups will be read again", error=str(error), groups=len(groups))
            deliver_instead(self._commits.failed(), UNAVAILABLE)
            for name in groups:
                self._on_lost(name)
        else:
            deliver(self._commits.committed().all_answers())
            for name in batch.groups:
                self._on_durable(name)

    async def _restore(self) -> None:
        names = self._commits.to_restore()
        if not names:
            return
        try:
            rows = await self._storage.load(names)
        except StorageError as error:
            log.warning("storage cannot be read, trying again", error=str(error), retry_s=RETRY_S)
            asyncio.get_running_loop().call_later(RETRY_S, self._wake.set)
            return
        for name in names:
            self._commits.restored(name)
            self._on_restored(name, rows.get(name, ()))
