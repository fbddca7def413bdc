"""The way of audit entries into the database: gathered, and written beside the requests, never in them."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, Self

import structlog

from manager.background.supervision import Loop, tell_bug
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.audit import AuditEntry, AuditListQuery

log = structlog.get_logger(__name__)

GATHER_S: Final = 1.0
"""How long entries are gathered: a manager that is killed loses those of the last second, at most."""
PRUNE_EVERY_S: Final = 60.0
MOST_WAITING: Final = 10_000
"""Entries that wait while the database is away; what is more is in the log only."""
AT_ONCE: Final = 100


class AuditStore(Protocol):
    """Where entries are kept: `manager.storage.audit_table`. Every method may raise `StorageError`."""

    async def add(self, entries: Sequence[AuditEntry]) -> None:
        """Store them, all or none."""
        ...

    async def read(self, asked: AuditListQuery) -> tuple[AuditEntry, ...]:
        """Those that are asked for, and one more if there are more."""
        ...

    async def prune(self, before_ms: int, keep: int) -> bool:
        """Forget what is too old or too much; whether there may be more to forget."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


class AuditWriter:
    """Takes entries at any time; stores them while its `async with` block runs, the last ones at its end.

    A batch of which the database does not say whether it is stored is stored again: twice rather than never.

    Args:
        store: where they are kept.
        keep_ms: for how long.
        keep_count: how many at most.
        now_ms: milliseconds since 1970.
    """

    def __init__(self, store: AuditStore, keep_ms: int, keep_count: int, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._keep_ms = keep_ms
        self._keep_count = keep_count
        self._now_ms = now_ms
        self._waiting: deque[AuditEntry] = deque()
        self._dropped = 0
        self._storing = asyncio.Lock()
        self._loops: list[Loop] = []

    def put(self, entry: AuditEntry) -> None:
        """Have `entry` stored within `GATHER_S` seconds."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(entry)
            return
        self._dropped += 1
        if self._dropped == 1:
            log.warning(
                "audit entries are in the log only: too many wait for the database", waiting=MOST_WAITING
            )

    async def flush(self) -> None:
        """Store all that wait; raises `StorageError`, and what was not stored waits on."""
        async with self._storing:
            while batch := [*islice(self._waiting, AT_ONCE)]:
                await self._store.add(batch)
                for _ in batch:
                    self._waiting.popleft()
            self._dropped = 0

    async def read(self, asked: AuditListQuery) -> tuple[AuditEntry, ...]:
        """What is asked for, with what this manager has done until now; raises `StorageError`."""
        await self.flush()
        return await self._store.read(asked)

    async def prune(self) -> None:
        """Forget what is too old or too much; raises `StorageError`."""
        while await self._store.prune(self._now_ms() - self._keep_ms, self._keep_count):
            pass

    async def __aenter__(self) -> Self:
        self._loops = [
            Loop("storing audit entries", self.flush, GATHER_S, "audit entries cannot be stored now"),
            Loop("pruning the audit log", self.prune, PRUNE_EVERY_S, "old audit entries cannot be deleted"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """The last to go: no request is answered any more. What is being stored is not given up on."""
        for loop in self._loops:
            await loop.finish()
        try:
            await self.flush()
        except StorageError as error:
            log.warning("audit entries are in the log only", entries=len(self._waiting), why=str(error))
        except Exception as error:  # noqa: BLE001 - the rest of the manager is to end in order all the same
            tell_bug("storing the last audit entries", error, entries=len(self._waiting))
        await self._store.close()
