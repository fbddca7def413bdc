"""The contract of fenced sinks, over those that need no connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from definition.sinks.sql import SqlOptions
from worker.sink_contract.contract import SinkContract
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from worker.sinks.base import Sink
    from worker.sinks.fence import Owner


class OfSql(SinkContract):
    """Places are tables of databases of their own: a fence is a task's, whatever tables it writes."""

    @pytest.fixture(autouse=True)
    def _closed(self) -> Iterator[None]:
        self.opened: list[Sink] = []
        yield
        for sink in self.opened:
            sink.close()

    def url(self, place: str) -> str:
        raise NotImplementedError

    def open(self, owner: Owner, place: str) -> Sink:
        sink = SqlSink(SqlOptions(url=self.url(place), table="rows"), owner)
        self.opened.append(sink)
        return sink

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        engine = sa.create_engine(self.url(place).replace("postgresql:", "postgresql+psycopg:"))
        try:
            with engine.connect() as connection:
                if not sa.inspect(connection).has_table("rows"):
                    return []
                return [tuple(row) for row in connection.exec_driver_sql("SELECT name, number FROM rows")]
        finally:
            engine.dispose()


class TestSqlite(OfSql):
    """A file each."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def url(self, place: str) -> str:
        return f"sqlite:///{self.folder}/{place}.db"


class TestPostgres(OfSql):
    """A database each."""

    steps = 10

    @pytest.fixture(autouse=True)
    def _server(self, request: pytest.FixtureRequest) -> Iterator[None]:
        self.server = request.getfixturevalue("postgres")
        self.urls: dict[str, str] = {}
        yield
        for sink in self.opened:
            sink.close()
        for url in self.urls.values():
            self.server.drop(url)

    def url(self, place: str) -> str:
        if place not in self.urls:
            self.urls[place] = self.server.new_database("postgresql")
        return self.urls[place]
