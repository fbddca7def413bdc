"""The fenced SQL sink: a batch's rows and the fence row move in one transaction, or not at all."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Self

from definition.tables import read_table_name
from worker.sinks import staging_postgres, staging_sqlite
from worker.sinks.base import Sink, Written
from worker.sinks.database import connect, end_older_sessions, place, plain_sessions, transaction
from worker.sinks.encoding import Encoder
from worker.sinks.errors import SinkError
from worker.sinks.fence import Verdict, judge
from worker.sinks.fence_rows import claim_fence, enter_fence, newest_row
from worker.sinks.inspection import inspect_table
from worker.sinks.parts import Part, chunked, raise_faults, whole
from worker.sinks.schemas import creatable, current_schema
from worker.sinks.table import describe_table, ensure_table, insert_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Engine, Table

    from definition.sinks.sql import SqlOptions
    from worker.sinks.base import Batch, Field, Finding, SinkTask
    from worker.sinks.fence import FenceRow, Mark, Owner
    from worker.sinks.fence_table import FenceTable
    from worker.sinks.parts import Rows
    from worker.sinks.staging import Staging

INLINE_ROWS = 20_000
"""How many rows of a batch, all partitions together, may pass through the driver unstaged."""


class SqlSink(Sink):
    """Rows into one table of SQLite or PostgreSQL, appended or upserted by key."""

    def __init__(self, options: SqlOptions, owner: Owner) -> None:
        self._name = read_table_name(options.table)
        self._key = options.key
        self._owner = owner
        self._engine = connect(options.url, owner)
        self._fence: FenceTable | None = None
        self._target: _Target | None = None
        self._known: FenceRow | None = None
        self._is_small = True

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """Connects when it is first used."""
        return cls(task.options, task.owner)

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """By the columns that the table has."""
        return inspect_table(task.options, fields, task.owner)

    @property
    def place(self) -> str:
        """The URL, without its password."""
        return place(self._engine)

    def claim(self) -> FenceRow:
        """Raise the fence row to the owner's token, and clear up after the owners before."""
        end_older_sessions(self._engine, self._owner)
        beside = self._schema()
        with plain_sessions(self._engine, self._owner) as plain, transaction(plain) as connection:
            fences = enter_fence(connection, self._owner, anywhere=True, beside=beside)
        with transaction(self._engine) as connection:
            self._fence, row = claim_fence(connection, self._owner, fences)
        self._known = row
        sweeper = staging_sqlite if self._engine.dialect.name == "sqlite" else staging_postgres
        sweeper.sweep(self._engine, self._owner)
        return row

    def newest(self) -> FenceRow | None:
        """The task's fence row."""
        with plain_sessions(self._engine, self._owner) as plain, transaction(plain) as connection:
            return newest_row(connection, self._owner)

    def prepare(self, fields: Sequence[Field]) -> None:
        """Create the table, or check the one that is there."""
        if self._fence is None:
            raise SinkError("the sink was not claimed")
        table = describe_table(self._name, fields, self._key)
        with transaction(self._engine) as connection:
            ensure_table(connection, table)
            beside = table.schema or current_schema(connection)
            stage_in = creatable(connection, [beside, self._fence.schema])
        self._target = _Target(self._engine, self._owner, table, fields, stage_in)

    def write(self, batch: Batch) -> Written:
        """Write the batch unless it is there.

        The rows are computed, and many of them staged, before the transaction begins: it is short, because a
        worker that freezes inside it keeps SQLite's lock.
        """
        if self._target is None or self._fence is None:
            raise SinkError("the sink was not prepared")
        if not self._is_next(batch.mark):
            with transaction(self._engine) as connection:
                is_new, stored = self._fence.admit(connection, self._owner, batch.mark)
            if not is_new:
                batch.discard()
                return Written(0, stored.rows, duplicate=True)
        try:
            parts = self._taken(self._target, batch)
            return self._put(self._target, self._fence, batch.mark, parts)
        finally:
            self._target.staging.clear()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _is_next(self, mark: Mark) -> bool:
        """By what this owner has written itself: who is newer is seen when the rows are put into the table.

        To ask the database before each batch, too, would be a transaction more for each.
        """
        return judge(self._known, self._owner, mark) is Verdict.WRITE

    def _taken(self, target: _Target, batch: Batch) -> list[Part]:
        """The batch's rows, encoded, or what is known of those that are staged now.

        It is taken to be small if the last one was. Where that is wrong some of it is computed twice.
        """
        if self._is_small and (rows := batch.collect(INLINE_ROWS)) is not None:
            return target.encoded([whole(rows)])
        parts = batch.scatter(target.staging.take(INLINE_ROWS // max(batch.partitions, 1)))
        raise_faults(parts)
        self._is_small = sum(part.count for part in parts) <= INLINE_ROWS
        return target.encoded(parts)

    def _schema(self) -> str | None:
        """Where the rows go; None on SQLite."""
        if self._name.schema is not None:
            return self._name.schema
        with transaction(self._engine) as connection:
            return current_schema(connection)

    def _put(self, target: _Target, fence: FenceTable, mark: Mark, parts: Sequence[Part]) -> Written:
        """The transaction; the fence is asked once more, for a newer owner may have come meanwhile."""
        rows = sum(part.count for part in parts)
        with target.staging.transaction() as connection:
            is_new, stored = fence.admit(connection, self._owner, mark)
            if not is_new:
                return Written(0, stored.rows, duplicate=True)
            target.write(connection, parts)
            fence.move(connection, self._owner, mark, stored.rows + rows)
        self._known = replace(stored, last=mark, rows=stored.rows + rows)
        return Written(rows, stored.rows + rows)


class _Target:
    """The table, and how rows get into it."""

    def __init__(
        self, engine: Engine, owner: Owner, table: Table, fields: Sequence[Field], stage_in: str | None
    ) -> None:
        """`stage_in` is the schema for staging, None for the database's own choice."""
        self._engine = engine
        self._table = table
        self._statement = insert_statement(table, engine.dialect)
        self._encoder = Encoder(
            driver=engine.url.drivername,
            names=tuple(field.name for field in fields),
            kinds=tuple(str(field.type) for field in fields),
            keys=tuple(at for at, column in enumerate(table.columns) if column.primary_key),
        )
        self.staging: Staging = (
            staging_sqlite.SqliteStaging(engine, owner, table, self._encoder)
            if engine.dialect.name == "sqlite"
            else staging_postgres.PostgresStaging(engine, owner, table, self._encoder, stage_in)
        )

    def write(self, connection: Connection, parts: Sequence[Part]) -> None:
        """Put all parts into the table, partition by partition: of two rows with one key the last counts."""
        for inline, group in groupby(parts, key=lambda part: part.rows is not None):
            if inline:
                self._insert(connection, [row for part in group for row in part.rows or ()])
            else:
                self.staging.move(connection, self._table, list(group))

    def encoded(self, parts: Sequence[Part]) -> list[Part]:
        """The parts as the driver takes their rows; done before the transaction, to keep that short."""
        return [part if part.rows is None else replace(part, rows=self._encode(part.rows)) for part in parts]

    def _encode(self, rows: Rows) -> Rows:
        if self._engine.dialect.name == "postgresql" and (column := self._encoder.nul_column(rows)):
            raise staging_postgres.nul_error(column)
        return self._encoder.chunk(rows)

    def _insert(self, connection: Connection, rows: Rows) -> None:
        """Past SQLAlchemy's own handling of parameters: that costs three times the insert."""
        for chunk in chunked(iter(rows)):
            connection.exec_driver_sql(self._statement, chunk)
