from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.worker.client.servers import Cluster
from worker.client.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    """A pool of connections."""
    async with Transport() as transport:
        yield transport


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Managers on loopback, taken down at the end."""
    cluster = Cluster()
    yield cluster
    await cluster.close()
