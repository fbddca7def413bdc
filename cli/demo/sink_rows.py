"""How many flights of each task are in the sink, looked up again and again while the demo runs.

The sink is asked and not the manager: of a task that is moved or killed right after a batch, nobody may hear
that the batch was written, and its new owner may have no more to do.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

from cli.demo.plan import DELAYS, FLIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from cli.demo.plan import Plan

Value = str | int
Count = tuple[Value, int]


class SinkRows:
    """Counts them; each look reads only those rows of `flights` that have come since the last one."""

    def __init__(self, database: Path, plan: Plan) -> None:
        self._database = database
        self._plan = plan
        self._counts: dict[str, Callable[[sqlite3.Connection], Mapping[Value, int]]] = {
            FLIGHTS: self._count_flights,
            DELAYS: _count_delays,
        }
        self._flights: Counter[Value] = Counter()
        self._counted_to = 0

    def by_task(self) -> dict[str, int]:
        """How many flights of each task are there; none where nothing was ever written."""
        rows = self._by_table()
        return {
            task.name: sum(rows[task.table].get(value, 0) for value in task.values)
            for task in self._plan.tasks
        }

    def _by_table(self) -> dict[str, Mapping[Value, int]]:
        if not self._database.exists():
            return {table: {} for table in self._counts}
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
            made = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            return {
                table: count(connection) if table in made else {} for table, count in self._counts.items()
            }

    def _count_flights(self, connection: sqlite3.Connection) -> Mapping[Value, int]:
        (last,) = connection.execute("SELECT COALESCE(MAX(rowid), 0) FROM flights").fetchone()
        counted: Iterable[Count] = connection.execute(
            f"SELECT {self._plan.flights_by}, COUNT(*) FROM flights"  # noqa: S608 - our own column name
            " WHERE rowid > ? AND rowid <= ? GROUP BY 1",
            (self._counted_to, last),
        )
        self._flights.update(dict(counted))
        self._counted_to = last
        return self._flights


def _count_delays(connection: sqlite3.Connection) -> Mapping[Value, int]:
    counted: Iterable[Count] = connection.execute("SELECT carrier, SUM(flights) FROM delays GROUP BY 1")
    return dict(counted)
