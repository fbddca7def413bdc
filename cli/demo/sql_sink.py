"""The demo's sink in SQLite: one database, both tables."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cli.demo.plan import Count, Value
    from cli.demo.truth import Row


class SqlSink:
    """`flights.db` in the work folder; workers need nothing for it."""

    worker_flags: tuple[str, ...] = ()
    how_to_read: tuple[str, ...] = ()

    def __init__(self, workdir: Path) -> None:
        self.place = workdir / "flights.db"
        self._counts: Counter[Value] = Counter()
        self._counted_to = 0

    def definition(self, table: str, part: str, key: Sequence[str] = ()) -> dict[str, Any]:
        """All tasks write into one table."""
        del part
        how = {"mode": "upsert", "key": list(key)} if key else {"mode": "append"}
        return {"format": "sql", "options": {"url": f"sqlite:///{self.place}", "table": table, **how}}

    def counted(self, table: str, by: str) -> Mapping[Value, int]:
        """Each look reads only those rows that have come since the last one."""
        if not self._has(table):
            return {}
        ((last,),) = self._query(f"SELECT COALESCE(MAX(rowid), 0) FROM {table}")  # noqa: S608 - our own names
        counted: Iterable[Count] = self._query(
            f"SELECT {by}, COUNT(*) FROM {table} WHERE rowid > ? AND rowid <= ? GROUP BY 1",  # noqa: S608 - likewise
            (self._counted_to, last),
        )
        self._counts.update(dict(counted))
        self._counted_to = last
        return self._counts

    def summed(self, table: str, by: str, column: str) -> Mapping[Value, int]:
        """All of it, which is not much."""
        if not self._has(table):
            return {}
        return dict(self._query(f"SELECT {by}, SUM({column}) FROM {table} GROUP BY 1"))  # noqa: S608 - likewise

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """None when the table was never created."""
        if self._has(table):
            yield from self._query(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - likewise

    def _has(self, table: str) -> bool:
        return self.place.exists() and bool(
            self._query("SELECT 1 FROM sqlite_master WHERE name = ?", (table,))
        )

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.place}?mode=ro", uri=True)) as connection:
            return connection.execute(statement, values).fetchall()
