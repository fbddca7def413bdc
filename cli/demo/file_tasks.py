"""The demo's tasks on files: one a part of the flights, and one a pair of parts for the delays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cli.demo.data import PARTS
from cli.demo.plan import DELAYS, FLIGHTS, DemoTask, Plan
from cli.demo.truth import DELAY_COLUMNS, FLIGHT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cli.demo.plan import DemoSink

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


def file_tasks(workdir: Path, rows: Mapping[str, int], sink: DemoSink) -> Plan:
    """All tasks of the demo; `rows` are how many there are in each part's files."""
    tasks = (*_flights_tasks(workdir, rows, sink), *_delays_tasks(workdir, rows, sink))
    return Plan(tasks, flights_by="carrier", rows=2 * sum(rows.values()))


def _flights_tasks(workdir: Path, rows: Mapping[str, int], sink: DemoSink) -> Iterator[DemoTask]:
    """Every flight of a part into the table `flights`."""
    for part, carriers in PARTS.items():
        definition = {
            "source": _source(workdir / "parts" / part, files_a_batch=1),
            "sql": FLIGHTS_SQL,
            "sink": sink.definition(FLIGHTS, part),
            "trigger": FLIGHTS_EVERY,
        }
        yield DemoTask(f"flights-{part}", definition, FLIGHTS, carriers, rows[part])


def _delays_tasks(workdir: Path, rows: Mapping[str, int], sink: DemoSink) -> Iterator[DemoTask]:
    """The delays of two parts by carrier and hour, kept up to date in the table `delays`."""
    parts = list(PARTS)
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        folders = workdir / "parts" / f"{{{first},{second}}}"
        definition = {
            "source": _source(folders, files_a_batch=FILES_A_DELAYS_BATCH),
            **delays_query(sink, f"{first}-{second}"),
            "trigger": DELAYS_EVERY,
        }
        carriers = (*PARTS[first], *PARTS[second])
        yield DemoTask(f"delays-{first}-{second}", definition, DELAYS, carriers, rows[first] + rows[second])


def delays_query(sink: DemoSink, part: str) -> dict[str, Any]:
    """What of a definition makes delays of whatever flights its source has."""
    return {
        "sql": DELAYS_SQL,
        "sink": sink.definition(DELAYS, part, key=DELAY_COLUMNS[:2]),
        "output_mode": "update",
        "spark_conf": {"spark.sql.shuffle.partitions": "1"},
    }


def _source(path: Path, *, files_a_batch: int) -> dict[str, Any]:
    options = {"path": str(path), "header": True, "nullValue": "NA", "maxFilesPerTrigger": files_a_batch}
    return {"format": "csv", "schema": SCHEMA, "options": options}
