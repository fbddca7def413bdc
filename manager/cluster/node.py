"""Putting a manager together: the only one on a file of its own, or one of several on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from manager.background.herd_alarms import HerdAlarms
from manager.cluster.directory import Directory
from manager.cluster.held_slots import HeldSlots
from manager.cluster.single_manager import ProcessLock, SingleManager
from manager.cluster.slot_controller import SlotController
from manager.cluster.slot_routing import SlotRouting
from manager.runtime.coordinator_runtime import CoordinatorRuntime

if TYPE_CHECKING:
    from manager.settings import ManagerSettings
    from manager.storage.audit_table import AuditTable
    from manager.storage.base import EventLog
    from manager.storage.cluster_state import ManagerIdentity
    from manager.storage.herd_table import HerdTable
    from manager.storage.sql_storage import SqlStorage
    from manager.storage.tally import TransactionTally
    from manager.storage.token_table import TokenTable
    from manager.storage.transfer_table import TransferTable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Node:
    """A manager among others. The runtime serves; the controller sees to it that it has something to."""

    runtime: CoordinatorRuntime
    controller: SlotController | SingleManager
    routing: SlotRouting
    directory: Directory
    events: EventLog
    tokens: TokenTable
    audit: AuditTable
    transfers: TransferTable
    alarms: HerdAlarms
    herd: HerdTable
    tally: TransactionTally
    lock: ProcessLock | None

    async def leave(self) -> None:
        """Hand everything over, answer whoever still waits, let go of the database."""
        await self.controller.stop()
        await self.runtime.stop()
        if self.lock is not None:
            self.lock.release()


async def open_node(settings: ManagerSettings, storage: SqlStorage, me: ManagerIdentity) -> Node:
    """Open the storage and get ready; nothing is served before the controller has started.

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
    held_slots = HeldSlots(me, slots, settings.lease_ms if storage.is_shared else None)
    routing = SlotRouting(held_slots, storage, storage.leases)
    runtime = CoordinatorRuntime(settings, storage, routing)
    runtime.begin()
    if storage.is_shared:
        controller: SlotController | SingleManager = SlotController(
            held_slots, storage.leases, routing, runtime.slots, settings.lease_ms
        )
    else:
        controller = SingleManager(held_slots, storage.leases, routing, runtime.slots)
    directory = Directory(held_slots, routing, storage, runtime)
    alarms = HerdAlarms(storage.alarms, storage.herd, runtime.use_alarms)
    return Node(
        runtime,
        controller,
        routing,
        directory,
        storage.events,
        storage.tokens,
        storage.audit,
        storage.transfers,
        alarms,
        storage.herd,
        storage.tally,
        lock,
    )
