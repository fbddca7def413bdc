"""One manager for a module of fuzzing: whatever was done to it must not matter to what comes after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.manager.fuzz.front import Front

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Serving from the first test to the last; at the end memory and storage are compared."""
    with Front(tmp_path_factory.mktemp("front")) as front:
        yield front
        front.run(front.check_stored())
