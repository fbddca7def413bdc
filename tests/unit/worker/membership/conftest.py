from __future__ import annotations

import pytest

from tests.unit.worker.membership.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """A membership that has not started."""
    return Bench()
