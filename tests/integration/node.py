"""A manager as its daemon puts it together; HTTP is added by whoever needs it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from manager.cluster.node import open_node
from manager.settings import ManagerSettings
from manager.storage.cluster_state import ManagerIdentity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from manager.cluster.node import Node
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from manager.storage.sql_storage import SqlStorage

FOR_EVER_MS = 600_000
"""A lease that no busy machine lets lapse."""


async def started_node(storage: SqlStorage, url: str = "http://m", **settings: Any) -> Node:
    """A manager that has taken up every group there is; workers are told `url`, `settings` are its own."""
    me = ManagerIdentity("m", uuid4().hex, url)
    node = await open_node(ManagerSettings(**{"lease_ms": FOR_EVER_MS} | settings), storage, me)
    await node.controller.start()
    return node


@asynccontextmanager
async def running(storage: SqlStorage, **settings: Any) -> AsyncIterator[CoordinatorRuntime]:
    """What such a manager does with requests, until it leaves at the end of the block."""
    node = await started_node(storage, **settings)
    try:
        yield node.runtime
    finally:
        await node.leave()
