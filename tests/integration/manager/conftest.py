"""A fresh database of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.manager.backends import BACKENDS, Database

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.postgres import Server


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return Database(f"sqlite+aiosqlite:///{tmp_path}/m.db")
    server: Server = request.getfixturevalue("postgres")
    return Database(server.new_database("postgresql+asyncpg"))
