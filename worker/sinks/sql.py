"""The fenced SQL sink: a batch's rows and the fence row move in one transaction, or not at all."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from worker.sinks.base import Owner, Rows, Sink, Written
from worker.sinks.database import connect, transaction
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import Verdict
from worker.sinks.fence_table import admit, create_fence_table, move_fence, raise_fence
from worker.sinks.table import converters, describe_table, ensure_table, insert_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from protocol.definition import SqlOptions
    from worker.sinks.base import Batch, Field

CHUNK_ROWS = 10_000
CHUNKS_AHEAD = 5
"""What is computed before the transaction begins, so that most batches hold the lock only to write."""


class SqlSink(Sink):
    """Rows into one table of SQLite or PostgreSQL, appended or upserted by key."""

    def __init__(self, options: SqlOptions, owner: Owner) -> None:
        self._options = options
        self._owner = owner
        self._engine = connect(options.url)
        self._writer: _TableWriter | None = None

    def claim(self) -> None:
        """Raise the fence row to the owner's token, in a transaction of its own."""
        with transaction(self._engine) as connection:
            create_fence_table(connection)
            raise_fence(connection, self._owner)

    def prepare(self, fields: Sequence[Field]) -> None:
        """Create the table, or check the one that is there."""
        table = describe_table(self._options.table, fields, self._options.key)
        with transaction(self._engine) as connection:
            ensure_table(connection, table)
        keys = [index for index, column in enumerate(table.columns) if column.primary_key]
        self._writer = _TableWriter(
            insert_statement(table, self._engine.dialect),
            converters(table, self._engine.dialect),
            {index: table.columns[index].name for index in keys},
        )

    def write(self, batch: Batch) -> Written:
        """Write the batch unless it is there; a duplicate's rows are computed all the same (see `Batch`)."""
        if self._writer is None:
            raise SinkError("the sink was not prepared")
        chunks = batch.chunks(CHUNK_ROWS)
        ahead = list(islice(chunks, CHUNKS_AHEAD))
        with transaction(self._engine) as connection:
            verdict, stored = admit(connection, self._owner, batch)
            if verdict is Verdict.WRITE:
                rows = self._writer.write(connection, chain(ahead, chunks))
                move_fence(connection, self._owner, batch, stored.rows + rows)
                return Written(rows, stored.rows + rows)
        for _ in chunks:
            pass
        return Written(0, stored.rows, duplicate=True)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


class _TableWriter:
    """Rows into a table, past SQLAlchemy's own handling of parameters: that costs three times the insert."""

    def __init__(
        self, statement: str, converters: Sequence[Callable[[Any], Any] | None], keys: dict[int, str]
    ) -> None:
        self._statement = statement
        self._converters = converters
        self._as_they_are = not any(converters)
        self._keys = keys

    def write(self, connection: Connection, chunks: Iterator[Rows]) -> int:
        """Insert all rows; returns how many."""
        count = 0
        for rows in chunks:
            self._refuse_null_keys(rows)
            connection.exec_driver_sql(self._statement, self._parameters(rows))
            count += len(rows)
        return count

    def _parameters(self, rows: Rows) -> Rows:
        if self._as_they_are:
            return rows
        converters = self._converters
        return [
            tuple(
                convert(value) if convert else value for convert, value in zip(converters, row, strict=True)
            )
            for row in rows
        ]

    def _refuse_null_keys(self, rows: Rows) -> None:
        """No NULL equals another: such rows would pile up instead of taking each other's place."""
        for index, name in self._keys.items():
            if any(row[index] is None for row in rows):
                raise SchemaError(
                    f"the key column {name} is NULL in a row, and an upsert cannot find such a row"
                )
