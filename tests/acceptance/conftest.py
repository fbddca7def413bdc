"""A herd of real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.processes import Herd, Manager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    """A manager that does not wait long for more workers."""
    herd = Herd(tmp_path, Manager(tmp_path, "--initial-rebalance-delay-ms", "1000"))
    yield herd
    herd.stop()
