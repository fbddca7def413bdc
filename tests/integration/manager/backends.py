"""The databases that a storage has to do with, and what a test does to them behind its back."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from manager.storage.sql_storage import SqlStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BACKENDS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "psycopg": "postgresql+psycopg"}
"""What a test is run with, and the driver that its storage has then."""
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


class Database:
    """One empty database; `url` is for the storage."""

    def __init__(self, url: str) -> None:
        self.url = url
        parsed = sa.make_url(url)
        self.backend = parsed.get_backend_name()
        self._engine = sa.create_engine(parsed.set(drivername=DRIVERS[self.backend]), poolclass=sa.NullPool)

    def run(self, *statements: str) -> None:
        """In one transaction of another connection."""
        with self.transaction() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def value(self, query: str) -> Any:
        """The first value of the first row, as another connection sees it."""
        with self.transaction() as connection:
            return connection.exec_driver_sql(query).scalar()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Another connection, in the middle of something."""
        with self._engine.begin() as connection:
            yield connection


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SqlStorage]:
    """The storage in this database, until the end of the block."""
    storage = SqlStorage(url)
    await storage.open()
    yield storage
    await storage.close()
