"""Putting a manager together: the only one on a file of its own, or one of several on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from manager.cluster.directory import ClusterDirectory
from manager.cluster.leases import Leases
from manager.cluster.sole import ProcessLock, Sole
from manager.cluster.steward import Steward
from manager.cluster.tenancy import SlotTenancy
from manager.runtime.runtime import Runtime

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
    from manager.cluster.view import Identity
    from manager.settings import ManagerSettings
    from manager.storage.audit import AuditTable
    from manager.storage.base import EventLog
    from manager.storage.sql import SqlStorage
    from manager.storage.tokens import TokenTable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """A manager among others. The runtime serves; the steward sees to it that it has something to."""

    runtime: Runtime
    steward: Steward | Sole
    tenancy: SlotTenancy
    directory: Directory
    events: EventLog
    tokens: TokenTable
    audit: AuditTable
    lock: ProcessLock | None

    async def leave(self) -> None:
        """Hand everything over, answer whoever still waits, let go of the database."""
        await self.steward.stop()
        await self.runtime.stop()
        if self.lock is not None:
            self.lock.release()


async def find_place(settings: ManagerSettings, storage: SqlStorage, me: Identity) -> Place:
    """Open the storage and get ready; nothing is served before the steward has started.

    SQLite is for one manager: a lock beside the file shows that there is no other, so it needs no lease,
    and goes on at once after a crash.

    Raises:
        StartupError: the storage cannot be used, or not by another manager.
        StorageError: it failed.
    """
    lock = None if storage.path is None else ProcessLock(storage.path)
    await storage.open()
    slots = await storage.leases.prepare(settings.slots)
    if slots != settings.slots:
        log.info("the number of slots is fixed in the database", slots=slots, asked_for=settings.slots)
    leases = Leases(me, slots, settings.lease_ms if storage.is_shared else None)
    tenancy = SlotTenancy(leases, storage, storage.leases)
    runtime = Runtime(settings, storage, tenancy)
    runtime.begin()
    if storage.is_shared:
        steward: Steward | Sole = Steward(leases, storage.leases, tenancy, runtime, settings.lease_ms)
    else:
        steward = Sole(leases, storage.leases, tenancy, runtime)
    directory = ClusterDirectory(leases, tenancy, storage, runtime)
    return Place(runtime, steward, tenancy, directory, storage.events, storage.tokens, storage.audit, lock)
