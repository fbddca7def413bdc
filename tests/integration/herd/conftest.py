"""Herds that are closed at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.herd.herd import Herd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@pytest.fixture
async def open_herd(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Herd]]]:
    """Makes a herd with the given settings of its manager."""
    herds: list[Herd] = []

    async def make(**settings: Any) -> Herd:
        herd = Herd(tmp_path, **settings)
        herds.append(herd)
        await herd.open()
        return herd

    yield make
    for herd in herds:
        await herd.close()
