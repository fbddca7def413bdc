"""What the queries of the benchmarks read: real flights, as CSV files that arrive one a batch."""

from __future__ import annotations

import csv
import json
import os
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from cli.demo.data import flights

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = ("carrier", "flight", "origin", "dest", "dep_delay", "time_hour")
SCHEMA = "carrier STRING, flight INT, origin STRING, dest STRING, dep_delay DOUBLE, time_hour STRING"
TYPES = "carrier TEXT, flight INTEGER, origin TEXT, dest TEXT, dep_delay DOUBLE PRECISION, time_hour TEXT"


def flights_source(folder: Path, rows: int, batches: int) -> dict[str, Any]:
    """The flights, from the beginning again where there are too few of them, as a file a batch."""
    folder.mkdir()
    every = [[flight[column] for column in COLUMNS] for flight in flights()]
    for number in range(batches):
        path = folder / f"{number:03}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(every[(number * rows + at) % len(every)] for at in range(rows))
        os.utime(path, (number, number))
    options = {"path": str(folder), "nullValue": "NA", "maxFilesPerTrigger": 1}
    return {"format": "csv", "schema": SCHEMA, "options": options}


def flights_lines(folder: Path, rows: int, batches: int) -> dict[str, Any]:
    """The same as files of JSON lines."""
    folder.mkdir()
    every = [json.dumps({column: _typed(column, each[column]) for column in COLUMNS}) for each in flights()]
    for number in range(batches):
        path = folder / f"{number:03}.json"
        path.write_text("".join(f"{every[(number * rows + at) % len(every)]}\n" for at in range(rows)))
        os.utime(path, (number, number))
    return {"format": "json", "schema": SCHEMA, "options": {"path": str(folder), "maxFilesPerTrigger": 1}}


def flights_json(rows: int) -> Iterator[bytes]:
    """As many flights, from the beginning again where there are too few, each as a producer writes JSON."""
    for flight in islice(cycle(flights()), rows):
        yield json.dumps({column: _typed(column, flight[column]) for column in COLUMNS}).encode()


def _typed(column: str, text: str) -> str | int | float | None:
    if text == "NA":
        return None
    return int(text) if column == "flight" else float(text) if column == "dep_delay" else text
