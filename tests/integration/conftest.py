"""One PostgreSQL for all integration tests; each test has a database of its own on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.postgres import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server
