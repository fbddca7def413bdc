"""What most tests of the group core begin with."""

from __future__ import annotations

import pytest

from tests.unit.manager.core.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """A group that nobody has joined."""
    return Bench()


@pytest.fixture
def member(bench: Bench) -> str:
    """The one member of the group, which is Stable."""
    [member] = bench.stable(None)
    return member


@pytest.fixture
def worker(bench: Bench) -> str:
    """The one worker of the group, which owns the task `t`."""
    [worker] = bench.herd(1, "t")
    return worker
