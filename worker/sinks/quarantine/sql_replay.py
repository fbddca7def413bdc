"""Plays rows again that are beside a sink `sql`: each is moved in one transaction, or stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.tables import TableName, read_table_name
from worker.sinks.bisection import RowsRefusedError
from worker.sinks.database import connect, plain_sessions, transaction
from worker.sinks.encoding import Encoder
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import fenced
from worker.sinks.fence_rows import claim_fence, enter_fence
from worker.sinks.parts import chunked
from worker.sinks.quarantine.sql_store import SqlStore
from worker.sinks.refusals import check_at_once, refusable
from worker.sinks.schemas import current_schema
from worker.sinks.table import describe_table, ensure_table, insert_statement, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from definition.sinks.sql import SqlOptions
    from worker.sinks.aside import Beside
    from worker.sinks.base import Field
    from worker.sinks.fence import Owner
    from worker.sinks.fence_table import FenceTable
    from worker.sinks.parts import Rows
    from worker.sinks.quarantine.store import Choice, StoredRow


class SqlReplay:
    """One task's rows, and the table of its sink; the query may run beside it."""

    def __init__(self, options: SqlOptions, owner: Owner, beside: Beside) -> None:
        """Connects when it is first used."""
        self._owner = owner
        self._options = options
        self._name = read_table_name(options.table)
        self._engine = connect(options.url, owner)
        aside = read_table_name(beside.table)
        self.store = SqlStore(self._engine, TableName(aside.schema or self._name.schema, aside.table), owner)

    def claim(self) -> None:
        """Raise the fence to the owner's token, where the query has not done so.

        What belongs to the query, such as its staging area, stays as it is.

        Raises:
            FencedError: a newer owner has the task.
        """
        with transaction(self._engine) as connection:
            beside = self._name.schema or current_schema(connection)
        with plain_sessions(self._engine, self._owner) as plain, transaction(plain) as connection:
            fences = enter_fence(connection, self._owner, anywhere=True, beside=beside)
        with transaction(self._engine) as connection:
            self._fence: FenceTable = claim_fence(connection, self._owner, fences)[0]

    def prepare(self, fields: Sequence[Field]) -> None:
        """See that the sink's table takes rows of these columns, or make it.

        Raises:
            SchemaError: it does not.
        """
        self._table = describe_table(self._name, fields, self._options.key)
        with transaction(self._engine) as connection:
            ensure_table(connection, self._table)
        self._statement = insert_statement(self._table, self._engine.dialect)
        self._encoder = Encoder(
            driver=self._engine.url.drivername,
            names=tuple(field.name for field in fields),
            kinds=tuple(str(field.type) for field in fields),
            keys=tuple(at for at, column in enumerate(self._table.columns) if column.primary_key),
        )

    def move(self, played: Sequence[StoredRow], rows: Rows) -> None:
        """Put rows into the sink's table, and take those out of the quarantine that they are made of.

        Raises:
            RowsRefusedError: the database does not take them, or one of them.
            FencedError: a newer owner has the task.
            SinkError: some are not there any more, or it cannot be done.
        """
        try:
            encoded = self._encoder.chunk(rows)
        except SchemaError as error:
            raise RowsRefusedError(str(error)) from None
        names = names_of(self._table) | self._fence.names | self.store.names
        with transaction(self._engine, names=names) as connection:
            total = self._admitted(connection)
            check_at_once(connection)
            self.store.remove(connection, played)
            with refusable(connection):
                for chunk in chunked(iter(encoded)):
                    connection.exec_driver_sql(self._statement, chunk)
            self._fence.count(connection, self._owner, total + len(rows))

    def discard(self, choice: Choice) -> int:
        """Throw rows away in a transaction in which the fence is looked at; returns how many.

        Raises:
            FencedError: a newer owner has the task.
        """
        with transaction(self._engine) as connection:
            self._admitted(connection)
            return self.store.discard_in(connection, choice)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _admitted(self, connection: Connection) -> int:
        """How many rows of the task the sink holds; it stays the owner's until the transaction ends."""
        stored = self._fence.read(connection, self._owner)
        if stored is None:
            raise SinkError(f"the fence row of {self._owner} is gone from the sink: restart the task")
        if stored.token > self._owner.token or stored.resets > self._owner.resets:
            raise fenced(self._owner, stored)
        return stored.rows
