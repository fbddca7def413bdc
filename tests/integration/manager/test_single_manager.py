"""A manager on a file, as most are: the only one, and at once what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.cluster.node import open_node
from manager.core.commands import DescribeGroup
from manager.settings import ManagerSettings
from manager.storage.base import StaleEpochError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit

if TYPE_CHECKING:
    from pathlib import Path

    from manager.cluster.node import Node

SETTINGS = ManagerSettings(slots=4)
COMMIT = CommitOffsetsRequest(offsets={"k": OffsetToCommit(offset=encode_opaque(1))})


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path}/m.db"


async def started(url: str, name: str) -> Node:
    node = await open_node(SETTINGS, SqlStorage(url), ManagerIdentity(name, f"{name}-1", f"http://{name}"))
    await node.controller.start()
    return node


async def test_a_file_is_for_one_manager(url: str) -> None:
    """The second is refused in one line, until the first is gone; then it goes on, whoever it is."""
    first = await started(url, "a")
    await first.runtime.ask("g", COMMIT)
    with pytest.raises(StartupError, match=r"another manager uses .*several managers need PostgreSQL"):
        await started(url, "b")
    await first.leave()
    second = await started(url, "b")
    described: Any = await second.runtime.ask("g", DescribeGroup())
    assert described.state == "Empty"
    await second.leave()


async def test_what_a_former_manager_still_has_under_way_is_fenced(url: str) -> None:
    """Its epochs are older, though its lock was not needed any more."""
    first = await started(url, "a")
    old = first.runtime._routing.epochs(["g"])
    await first.leave()
    second = await started(url, "b")
    with pytest.raises(StaleEpochError):
        await second.runtime._storage.commit([], old)
    await second.leave()
