"""Unit tests need nothing that a run for a marker is about: the Makefile leaves this folder out of those."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

LEFT_OUT_HERE: Final = ("spark", "connectors", "browser", "by_hand")
"""A test with one of these would be missing where it belongs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Refuse such a test before any run leaves it out."""
    here = Path(__file__).parent
    for item in items:
        found = [name for name in LEFT_OUT_HERE if item.get_closest_marker(name)]
        if here in item.path.parents and found:
            raise pytest.UsageError(f"{item.nodeid}: the runs for {found[0]} leave tests/unit out")
