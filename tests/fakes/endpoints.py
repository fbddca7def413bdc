"""All that a manager can be asked, of one that never starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.app import api_of, endpoints_of
from manager.cluster.directory import Directory
from manager.cluster.held_slots import HeldSlots
from manager.cluster.slot_routing import SlotRouting
from manager.http.openapi.description import OpenApiHandlers
from manager.runtime.coordinator_runtime import CoordinatorRuntime
from manager.settings import GroupSettings
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage

if TYPE_CHECKING:
    from manager.http.endpoint import Endpoint


def all_endpoints() -> list[Endpoint]:
    """In the order of their routes."""
    return endpoints_of(*_idle())


def api_endpoints() -> list[Endpoint]:
    """Those of the API."""
    api = api_of(*_idle())
    return [*api, *OpenApiHandlers(api).endpoints()]


def _idle() -> tuple[CoordinatorRuntime, Directory]:
    storage = SqlStorage("sqlite+aiosqlite://")
    held_slots = HeldSlots(ManagerIdentity("m", "m-1", "http://m"), 1, None)
    routing = SlotRouting(held_slots, storage, storage.leases)
    runtime = CoordinatorRuntime(GroupSettings(), storage, routing)
    return runtime, Directory(held_slots, routing, storage, runtime)
