"""Staging for PostgreSQL: an unlogged table for each large batch, filled by COPY.

A table of its own is gone at once when it is dropped, and leaves no dead rows behind. Whoever stages first
makes it, so that batches without large partitions cost nothing. It is dropped when the batch is over, not in
the transaction: an attempt that is late still holds it, and the fence row would be held as long.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlalchemy.sql import quoted_name

from worker.sinks.bisection import Search, put_by_halves
from worker.sinks.database import connect, lock_tables, transaction
from worker.sinks.errors import SinkError
from worker.sinks.parts import Staged, drain, too_many
from worker.sinks.refusals import refusable
from worker.sinks.staging import ATTEMPT, PARTITION, Staging, is_dead, new_area, staged_columns
from worker.sinks.table import told_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine, Table

    from worker.sinks.aside import Aside
    from worker.sinks.encoding import Encoder
    from worker.sinks.fence import Owner
    from worker.sinks.parts import Rows

PREFIX = "sparkherd_stage_"
_POSITION = "sparkherd_position"
_PATIENCE = sa.text("SET LOCAL lock_timeout = '1s'")
_WAITS = sa.text("SELECT current_setting('lock_timeout')")
_WAIT = sa.text("SELECT set_config('lock_timeout', :waits, true)")
_MINE = sa.text("SELECT schemaname, tablename FROM pg_tables WHERE starts_with(tablename, :prefix)")


@dataclass(frozen=True, slots=True)
class PostgresStage:
    """A staging table, seen from an executor."""

    url: str
    owner: Owner
    schema: str | None
    name: str
    place: str
    create: str
    encoder: Encoder
    here_only: bool = False

    @property
    def names(self) -> set[str]:
        """Of the table, as PostgreSQL tells of it."""
        return told_names(self.schema, self.name)

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> Staged:
        """Copy the rows in one transaction: of an attempt that fails nothing is left."""
        engine = connect(self.url, self.owner)
        try:
            with transaction(engine) as connection:
                self._create(connection)
            with transaction(engine, names=self.names) as connection:
                return self._copy(connection, chunks, (partition, attempt))
        finally:
            engine.dispose()

    def _create(self, connection: Connection) -> None:
        """Make the table unless another partition has."""
        lock_tables(connection)
        if not sa.inspect(connection).has_table(self.name, schema=self.schema):
            connection.exec_driver_sql(self.create)
            position = f"ADD COLUMN {_POSITION} bigint GENERATED ALWAYS AS IDENTITY"
            connection.exec_driver_sql(f"ALTER TABLE {_escaped(self.place)} {position}")

    def _copy(self, connection: Connection, chunks: Iterator[Rows], key: tuple[int, int]) -> Staged:
        count = 0
        aside: list[Aside] = []
        for rows in chunks:
            encoded, refused = self.encoder.sorted_out(rows)
            refused += self._copy_chunk(connection, encoded, key)
            count += len(rows) - len(refused)
            aside += refused
            if refused and too_many(aside, self.encoder.most_aside):
                drain(chunks)
        return Staged(count, tuple(aside))

    def _copy_chunk(self, connection: Connection, rows: Rows, key: tuple[int, int]) -> list[Aside]:
        """The columns have the table's own types, so a value that does not fit shows here.

        Nobody is asked between tries whether the batch is wanted: of a task that it has cancelled Spark ends
        this process within seconds, and a newer owner ends this session.
        """
        most = self.encoder.most_aside
        if most is None:
            self._copy_rows(connection, rows, key)
            return []

        def put(some: range) -> None:
            with refusable(connection):
                self._copy_rows(connection, rows[some.start : some.stop], key)

        found = put_by_halves(len(rows), put, Search(most))
        return [self.encoder.refused(rows[each.at], each.why, each.public) for each in found]

    def _copy_rows(self, connection: Connection, rows: Rows, key: tuple[int, int]) -> None:
        columns = ", ".join([*(f"c{at}" for at in range(len(self.encoder.names))), PARTITION, ATTEMPT])
        raw: Any = connection.connection.driver_connection
        with (
            closing(raw.cursor()) as cursor,
            cursor.copy(f"COPY {self.place} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row((*row, *key))


class PostgresStaging(Staging):
    """A staging table, seen from the driver."""

    def __init__(
        self, engine: Engine, owner: Owner, table: Table, encoder: Encoder, schema: str | None
    ) -> None:
        """`schema` is where the table is made; None for where PostgreSQL makes tables by itself."""
        self._engine = engine
        name = PREFIX + new_area(owner)
        self._place = _quoted(schema, name)
        url = engine.url.render_as_string(hide_password=False)
        create = _create_statement(self._place, table, engine)
        stage = PostgresStage(url, owner, schema, name, self._place, create, encoder)
        self.stage, self._names = stage, stage.names
        self.position: sa.ColumnClause[int] = sa.column(_POSITION)
        columns: list[sa.ColumnClause[Any]] = [*staged_columns(table), self.position]
        self.source = sa.table(
            quoted_name(name, quote=True),  # dialects remember what they had to decide about, for ever
            *columns,
            schema=None if schema is None else quoted_name(schema, quote=True),
        )

    def transaction(self, names: Collection[str]) -> AbstractContextManager[Connection]:
        """A transaction like any other: the staging table is in the same database."""
        return transaction(self._engine, names={*names, *self._names})

    def prepare_for_search(self, connection: Connection) -> None:
        """By an index: without one, each try would read all staged rows.

        Who is late with an attempt still holds the table, as the transaction holds the fence row. So it is
        waited for a moment only, and there is no index then.
        """
        waits = connection.execute(_WAITS).scalar_one()
        with suppress(OperationalError), connection.begin_nested():
            connection.execute(_PATIENCE)
            connection.exec_driver_sql(f"CREATE INDEX ON {_escaped(self._place)} ({ATTEMPT}, {_POSITION})")
        connection.execute(_WAIT, {"waits": waits})

    def dispose(self) -> None:
        """Drop the table, if there is one."""
        _drop(self._engine, self._place)


def sweep(engine: Engine, owner: Owner) -> None:
    """Drop what the task's queries before this one have left, wherever their rows went."""
    with transaction(engine) as connection:
        tables = connection.execute(_MINE, {"prefix": f"{PREFIX}{owner.digest}_"}).all()
    for schema, name in tables:
        if is_dead(name.removeprefix(PREFIX), owner):
            _drop(engine, _quoted(schema, name))


def _drop(engine: Engine, place: str) -> None:
    """One that is still written to, or another's by now, stays for the next sweep."""
    with suppress(SinkError), transaction(engine) as connection:
        connection.execute(_PATIENCE)
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_escaped(place)}")


def _quoted(*names: str | None) -> str:
    """A name with those before it, as statements past SQLAlchemy take it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names if name is not None)


def _escaped(place: str) -> str:
    """For what goes through SQLAlchemy: the driver looks for placeholders in it, as it does not in COPY."""
    return place.replace("%", "%%")


def _create_statement(place: str, table: Table, engine: Engine) -> str:
    """Its columns have the types of the table's own, so that what does not fit shows when it is staged."""
    columns = [column.label(f"c{at}") for at, column in enumerate(table.columns)]
    zero: sa.ColumnElement[int] = sa.literal_column("0::bigint")
    like = sa.select(*columns, zero.label(PARTITION), zero.label(ATTEMPT)).compile(engine)
    return f"CREATE UNLOGGED TABLE {_escaped(place)} AS {like} WITH NO DATA"
