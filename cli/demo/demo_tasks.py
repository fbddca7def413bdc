"""The demo's tasks: one a part of the flights, and one a pair of parts for the delays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cli.demo.data import PARTS
from cli.demo.truth import DELAY_COLUMNS, FLIGHT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SCHEMA: Final = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, "
    "dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour STRING"
)
FLIGHTS_SQL: Final = f"SELECT {', '.join(FLIGHT_COLUMNS)} FROM source"  # noqa: S608 - our own column names
DELAYS_SQL: Final = """
    SELECT carrier, hour, COUNT(*) AS flights, COUNT(dep_delay) AS departed,
           COALESCE(SUM(dep_delay), 0) AS dep_delay, COALESCE(SUM(arr_delay), 0) AS arr_delay
    FROM source GROUP BY carrier, hour
"""
FILES_A_DELAYS_BATCH: Final = 4
FLIGHTS_EVERY: Final = {"processing_time": "3 seconds"}
DELAYS_EVERY: Final = {"processing_time": "6 seconds"}
"""A pace that two cores keep up with; files a part times seconds a batch is how long the demo streams."""


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A task to create, and how many rows it has read once a batch is done.

    `rows_after[b]` is the count after batch `b`: the files of a part are read in order, so many a batch.
    """

    name: str
    definition: Mapping[str, Any]
    rows_after: tuple[int, ...]

    @property
    def rows(self) -> int:
        """All rows of its part."""
        return self.rows_after[-1]

    def rows_done(self, batch_id: int | None) -> int:
        """The rows read when `batch_id` was the last finished batch."""
        return 0 if batch_id is None else self.rows_after[min(batch_id, len(self.rows_after) - 1)]


def demo_tasks(workdir: Path, files: Mapping[str, Sequence[int]]) -> list[DemoTask]:
    """All tasks of the demo; `files` are the rows of each file, by part."""
    return [*_flights_tasks(workdir, files), *_delays_tasks(workdir, files)]


def _flights_tasks(workdir: Path, files: Mapping[str, Sequence[int]]) -> Iterator[DemoTask]:
    """Every flight of a part into the table `flights`."""
    for part, rows in files.items():
        definition = {
            "source": _source(workdir / "parts" / part, files_a_batch=1),
            "sql": FLIGHTS_SQL,
            "sink": _sink(workdir, table="flights", mode="append"),
            "trigger": FLIGHTS_EVERY,
        }
        yield DemoTask(f"flights-{part}", definition, tuple(itertools.accumulate(rows)))


def _delays_tasks(workdir: Path, files: Mapping[str, Sequence[int]]) -> Iterator[DemoTask]:
    """The delays of two parts by carrier and hour, kept up to date in the table `delays`."""
    parts = list(PARTS)
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        definition = {
            "source": _source(
                workdir / "parts" / f"{{{first},{second}}}", files_a_batch=FILES_A_DELAYS_BATCH
            ),
            "sql": DELAYS_SQL,
            "sink": _sink(workdir, table="delays", mode="upsert", key=list(DELAY_COLUMNS[:2])),
            "output_mode": "update",
            "trigger": DELAYS_EVERY,
            "spark_conf": {"spark.sql.shuffle.partitions": "1"},
        }
        merged = [rows for pair in zip(files[first], files[second], strict=True) for rows in pair]
        yield DemoTask(f"delays-{first}-{second}", definition, tuple(_batches(merged, FILES_A_DELAYS_BATCH)))


def _batches(rows: Sequence[int], files_a_batch: int) -> Iterator[int]:
    """The running count of rows after each batch of so many files."""
    total = list(itertools.accumulate(rows))
    yield from total[files_a_batch - 1 :: files_a_batch]
    if len(total) % files_a_batch:
        yield total[-1]


def _source(path: Path, *, files_a_batch: int) -> dict[str, Any]:
    options = {"path": str(path), "header": True, "nullValue": "NA", "maxFilesPerTrigger": files_a_batch}
    return {"format": "csv", "schema": SCHEMA, "options": options}


def _sink(workdir: Path, **options: Any) -> dict[str, Any]:
    return {"format": "sql", "options": {"url": f"sqlite:///{workdir / 'flights.db'}", **options}}
