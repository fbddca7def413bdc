"""All that a manager can be asked, of one that never starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.cluster.directory import OneManager
from manager.http.app import endpoints_of
from manager.runtime.runtime import Runtime
from manager.settings import GroupSettings
from manager.storage.sql import SqlStorage
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from manager.http.endpoints import Endpoint


def all_endpoints() -> list[Endpoint]:
    """In the order of their routes."""
    idle = Runtime(GroupSettings(), SqlStorage("sqlite+aiosqlite://"))
    return endpoints_of(idle, OneManager(idle, Coordinator("m", "http://m")))
