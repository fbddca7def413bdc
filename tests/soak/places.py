"""What is in the sinks of the soak's tasks, read without Spark, against what has to be there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.dataset
import sqlalchemy as sa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.soak.feed import KEYS, ROWS_A_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WINDOW_S = ROWS_A_FILE
"""Of the windows that are counted: so each has as many rows as a file."""
NOT_THERE = (sa.exc.OperationalError, sa.exc.ProgrammingError)


class Fault(NamedTuple):
    """How many rows a sink lacks, and how many are there that should not be, or more than once."""

    lost: int
    twice: int


class Database:
    """Tables of a SQL database."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)

    def close(self) -> None:
        """Let go of it."""
        self._engine.dispose()

    def ids(self, table: str) -> Counter[int]:
        """How often each row is there, by its number; none of a table that is not made yet."""
        return Counter(number for (number,) in self._asked(f"SELECT id FROM {table}"))

    def counts(self, table: str) -> dict[str, int]:
        """The count of each key."""
        return {key: int(count) for key, count in self._asked(f"SELECT name, n FROM {table}")}

    def put_aside(self, task: str) -> int:
        """Rows in the quarantine of a task."""
        found = self._asked("SELECT COUNT(*) FROM sparkherd_quarantine WHERE task = :task", task=task)
        return int(found[0][0]) if found else 0

    def _asked(self, query: str, **values: str) -> list[tuple[Any, ...]]:
        try:
            with self._engine.connect() as connection:
                return [tuple(row) for row in connection.execute(sa.text(query), values)]
        except NOT_THERE:
            return []


def ids_of_files(folder: Path) -> Counter[int]:
    """In the batches of a sink `fenced_files`."""
    return Counter(_column(folder, "id"))


def windows_of_files(folder: Path) -> Counter[int]:
    """The counts of windows, each as often as there are windows of it."""
    return Counter(_column(folder, "n"))


def ids_of_delta(folder: Path) -> Counter[int]:
    """In a table of Delta Lake."""
    try:
        table = DeltaTable(str(folder)).to_pyarrow_table(columns=["id"])
    except TableNotFoundError:
        return Counter()
    return Counter(table["id"].to_pylist())


def _column(folder: Path, name: str) -> Iterable[int]:
    files = [str(each) for each in sorted(folder.glob("sparkherd_batch=*/*.parquet"))]
    return pyarrow.dataset.dataset(files).to_table(columns=[name])[name].to_pylist() if files else []


def of_ids(found: Counter[int], rows: int) -> Fault:
    """Each number below `rows` once."""
    due = Counter(range(rows))
    return Fault((due - found).total(), (found - due).total())


def of_counts(found: Mapping[str, int], rows: int) -> Fault:
    """Each row counted once, by its key."""
    due = Counter(f"k{number % KEYS}" for number in range(rows))
    there = Counter(found)
    return Fault((due - there).total(), (there - due).total())


def of_windows(found: Counter[int], rows: int, open_windows: int) -> Fault:
    """All windows but the last `open_windows`, which the watermark has not closed, are there and whole."""
    whole, closed = found[WINDOW_S], max(rows // WINDOW_S - open_windows, 0)
    return Fault(max(closed - whole, 0), found.total() - whole)
