"""Staging for SQLite: files beside the database, one for each query that has large batches.

A file has one writer at a time. Were the rows staged in the database itself, executors would hold up all
other tasks that write there, and one that was frozen while it staged would hold them up for good.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from worker.sinks.database import LOCK_TIMEOUT_S, transaction
from worker.sinks.errors import SinkError
from worker.sinks.parts import Staged, drain, too_many
from worker.sinks.refusals import driver_of
from worker.sinks.staging import ATTEMPT, PARTITION, Staging, is_dead, new_area, staged_columns
from worker.sinks.table import insert_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table

    from worker.sinks.aside import Aside
    from worker.sinks.encoding import Encoder
    from worker.sinks.fence import Owner
    from worker.sinks.parts import Part, Rows

_SCHEMA = "sparkherd_stage"


@dataclass(frozen=True, slots=True)
class SqliteStage:
    """A staging file, seen from an executor."""

    path: str
    encoder: Encoder
    here_only: bool = True

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> Staged:
        """Write the rows, some at a time, so that other partitions get in between."""
        try:
            with closing(self._open()) as connection:
                return self._put(connection, partition, attempt, chunks)
        except sqlite3.Error as error:
            raise SinkError(f"the staging file {self.path} refused: {error}") from None

    def _put(
        self, connection: sqlite3.Connection, partition: int, attempt: int, chunks: Iterator[Rows]
    ) -> Staged:
        count = 0
        aside: list[Aside] = []
        for rows in chunks:
            encoded, refused = self.encoder.sorted_out(rows)
            count += self._insert(connection, encoded, partition, attempt)
            aside += refused
            if refused and too_many(aside, self.encoder.most_aside):
                drain(chunks)
        return Staged(count, tuple(aside))

    def _open(self) -> sqlite3.Connection:
        """Nothing of it has to outlive the machine, so nothing waits for the disk."""
        Path(self.path).parent.mkdir(exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT_S, isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        columns = ", ".join(f"c{at}" for at in range(len(self.encoder.names)))
        connection.execute(f"CREATE TABLE IF NOT EXISTS staged ({columns}, {PARTITION}, {ATTEMPT})")
        return connection

    def _insert(self, connection: sqlite3.Connection, rows: Rows, partition: int, attempt: int) -> int:
        marks = ", ".join("?" * len(self.encoder.names))
        statement = f"INSERT INTO staged VALUES ({marks}, {partition:d}, {attempt:d})"  # noqa: S608 - numbers
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, rows)
        connection.execute("COMMIT")
        return len(rows)


class SqliteStaging(Staging):
    """A staging file, seen from the driver."""

    def __init__(self, engine: Engine, owner: Owner, table: Table, encoder: Encoder) -> None:
        self._engine = engine
        self._path = _folder(engine) / f"{new_area(owner)}.db"
        self.stage = SqliteStage(str(self._path), encoder)
        self.source = sa.table("staged", *staged_columns(table), schema=_SCHEMA)
        self.position = sa.literal_column("rowid")
        self._move_one = self._one_of(table, engine)

    def transaction(self, names: Collection[str]) -> AbstractContextManager[Connection]:
        """A transaction of the database with the file beside it, if there is one."""
        files = {_SCHEMA: self._path} if self._path.exists() else {}
        return transaction(self._engine, files, names=names)

    def move_one(self, connection: Connection, part: Part, position: int) -> None:
        """Past SQLAlchemy, which takes longer than SQLite."""
        driver_of(connection).execute(self._move_one, (part.attempt, position))

    def _one_of(self, table: Table, engine: Engine) -> str:
        """The statement for one row, by its attempt and its position."""
        columns = [self.source.c[f"c{at}"] for at in range(len(table.columns))]
        chosen = (self.source.c[ATTEMPT] == sa.bindparam("attempt"), self.position == sa.bindparam("at"))
        moving = insert_from(table, sa.select(*columns).where(*chosen), engine.dialect)
        return str(moving.compile(dialect=engine.dialect))

    def dispose(self) -> None:
        """Remove the file; a straggler that still writes to it writes to nowhere."""
        _remove(self._path)


def sweep(engine: Engine, owner: Owner) -> None:
    """Remove what the task's queries before this one have left."""
    for path in _folder(engine).glob(f"{owner.digest}_*.db"):
        if is_dead(path.stem, owner):
            _remove(path)


def _folder(engine: Engine) -> Path:
    return Path(f"{engine.url.database}-sparkherd")


def _remove(path: Path) -> None:
    for file in (path, path.with_name(f"{path.name}-journal")):
        with suppress(OSError):  # nobody else uses it
            file.unlink()
