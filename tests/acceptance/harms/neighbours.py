"""The well-behaved tasks beside a harmful one, and what is in their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.soak.places import Database, Fault, of_ids

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.harms.feed import Feed

EVERY: Final = {"processing_time": "1 second"}
SMALL: Final = {"spark.sql.shuffle.partitions": "1"}
"""Settings of a query that has few rows."""


@dataclass(frozen=True)
class Neighbour:
    """A task that writes all rows of the feed into a table of its own, at the URL `url`."""

    name: str
    url: str
    database: Database

    @property
    def _table(self) -> str:
        return self.name.replace("-", "_")

    def definition(self, feed: Feed) -> dict[str, Any]:
        """The task's."""
        return {
            "source": feed.source,
            "sql": "SELECT id FROM source",
            "sink": {"format": "sql", "options": {"url": self.url, "table": self._table}},
            "trigger": EVERY,
            "spark_conf": SMALL,
        }

    def fault(self, rows: int) -> Fault:
        """What is wrong in its table when `rows` rows were fed."""
        return of_ids(self.database.ids(self._table), rows)


def neighbours(number: int, folder: Path, postgres: str) -> Iterator[Neighbour]:
    """So many, by turns in a SQLite of its own and in PostgreSQL: no two of them wait for one lock."""
    readable = Database(postgres.replace("postgresql:", "postgresql+psycopg:", 1))
    for at in range(number):
        name = f"good-{at}"
        if at % 2:
            yield Neighbour(name, postgres, readable)
        else:
            url = f"sqlite:///{folder / name}.db"
            yield Neighbour(name, url, Database(url))
