from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.worker.tasks.bench import Bench
from worker.background import BackgroundTasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def background() -> AsyncIterator[BackgroundTasks]:
    """Whoever works in the background; none is left after the test."""
    async with BackgroundTasks() as background:
        yield background
        assert not background._failed.done(), background._failed.exception()


@pytest.fixture
async def bench(background: BackgroundTasks) -> Bench:
    """A task runner that has been assigned nothing yet."""
    return Bench(background)
