"""Staging for PostgreSQL: an unlogged table for each large batch, filled by COPY.

A table of its own is gone at once when it is dropped, and leaves no dead rows behind. Whoever stages first
makes it, so that batches without large partitions cost nothing.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from worker.sinks.database import connect, lock_tables, transaction
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.staging import ATTEMPT, PARTITION, Staging, staged_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table

    from worker.sinks.encoding import Encoder
    from worker.sinks.marks import Owner
    from worker.sinks.parts import Rows

PREFIX = "sparkherd_stage_"
_POSITION = "sparkherd_position"
_SWEEP_PATIENCE = sa.text("SET LOCAL lock_timeout = '1s'")
_MINE = sa.text("SELECT tablename FROM pg_tables WHERE starts_with(tablename, :prefix)")


@dataclass(frozen=True, slots=True)
class PostgresStage:
    """A staging table, seen from an executor."""

    url: str
    owner: Owner
    name: str
    create: str
    encoder: Encoder
    here_only: bool = False

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> int:
        """Copy the rows in one transaction: of an attempt that fails nothing is left."""
        engine = connect(self.url, self.owner)
        try:
            with transaction(engine) as connection:
                self._create(connection)
            with transaction(engine) as connection:
                return self._copy(connection, chunks, (partition, attempt))
        finally:
            engine.dispose()

    def _create(self, connection: Connection) -> None:
        """Make the table unless another partition has."""
        lock_tables(connection)
        if not sa.inspect(connection).has_table(self.name):
            connection.exec_driver_sql(self.create)
            position = f"ADD COLUMN {_POSITION} bigint GENERATED ALWAYS AS IDENTITY"
            connection.exec_driver_sql(f'ALTER TABLE "{self.name}" {position}')

    def _copy(self, connection: Connection, chunks: Iterator[Rows], key: tuple[int, int]) -> int:
        columns = ", ".join([*(f"c{at}" for at in range(len(self.encoder.names))), PARTITION, ATTEMPT])
        raw: Any = connection.connection.driver_connection
        count = 0
        with (
            closing(raw.cursor()) as cursor,
            cursor.copy(f'COPY "{self.name}" ({columns}) FROM STDIN') as copy,
        ):
            for rows in chunks:
                if column := self.encoder.nul_column(rows):
                    raise nul_error(column)
                for row in self.encoder.chunk(rows):
                    copy.write_row((*row, *key))
                count += len(rows)
        return count


class PostgresStaging(Staging):
    """A staging table, seen from the driver."""

    def __init__(self, engine: Engine, owner: Owner, batch_id: int, table: Table, encoder: Encoder) -> None:
        self._engine = engine
        self._name = f"{PREFIX}{owner.digest}_{owner.token}_{batch_id}"
        url = engine.url.render_as_string(hide_password=False)
        create = _create_statement(self._name, table, engine)
        self.stage = PostgresStage(url, owner, self._name, create, encoder)
        self.position = sa.column(_POSITION)
        self.source = sa.table(self._name, *staged_columns(table), self.position)

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction like any other: the staging table is in the same database."""
        return transaction(self._engine)

    def drop(self, connection: Connection) -> None:
        """Drop the table, if there is one, when the transaction commits."""
        connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{self._name}"')

    def dispose(self) -> None:
        """Nothing is left of it."""


def sweep(engine: Engine, owner: Owner) -> None:
    """Drop the tables of the task's former owners; one that is still written to waits for the next sweep."""
    prefix = f"{PREFIX}{owner.digest}_"
    with transaction(engine) as connection:
        names = connection.execute(_MINE, {"prefix": prefix}).scalars().all()
    for name in names:
        if int(name.removeprefix(prefix).split("_")[0]) < owner.token:
            _drop_leftover(engine, name)


def nul_error(column: str) -> SchemaError:
    """The refusal of a text that PostgreSQL cannot hold; the text names the column."""
    remedy = f"select replace({column}, char(0), '') AS {column} instead"
    return SchemaError(f"column {column} holds the character NUL, which PostgreSQL's text cannot: {remedy}")


def _drop_leftover(engine: Engine, name: str) -> None:
    try:
        with transaction(engine) as connection:
            connection.execute(_SWEEP_PATIENCE)
            connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{name}"')
    except SinkError:
        return


def _create_statement(name: str, table: Table, engine: Engine) -> str:
    """Its columns have the types of the table's own, so that what does not fit shows when it is staged."""
    columns = [column.label(f"c{at}") for at, column in enumerate(table.columns)]
    zero: sa.ColumnElement[int] = sa.literal_column("0::bigint")
    like = sa.select(*columns, zero.label(PARTITION), zero.label(ATTEMPT)).compile(engine)
    return f'CREATE UNLOGGED TABLE "{name}" AS {like} WITH NO DATA'
