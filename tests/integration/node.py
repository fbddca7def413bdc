"""A manager as its daemon puts it together; HTTP is added by whoever needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from manager.cluster.node import open_node
from manager.settings import ManagerSettings
from manager.storage.cluster_state import Identity

if TYPE_CHECKING:
    from manager.cluster.node import Node
    from manager.storage.sql import SqlStorage

FOR_EVER_MS = 600_000
"""A lease that no busy machine lets lapse."""


async def started_node(storage: SqlStorage, url: str = "http://m", **settings: Any) -> Node:
    """A manager that has taken up every group there is; workers are told `url`, `settings` are its own."""
    me = Identity("m", uuid4().hex, url)
    node = await open_node(ManagerSettings(**{"lease_ms": FOR_EVER_MS} | settings), storage, me)
    await node.controller.start()
    return node
