from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.worker.keeper.bench import Bench
from worker.crew import Crew

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def crew() -> AsyncIterator[Crew]:
    """Whoever works in the background; none is left after the test."""
    async with Crew() as crew:
        yield crew
        assert not crew._failed.done(), crew._failed.exception()


@pytest.fixture
async def bench(crew: Crew) -> Bench:
    """A keeper that has been assigned nothing yet."""
    return Bench(crew)
