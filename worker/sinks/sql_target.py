"""The table that the rows of a sink `sql` go to, and how they get into it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from worker.sinks import staging_postgres, staging_sqlite
from worker.sinks.aside import counted
from worker.sinks.bisection import RowsRefusedError, Search, put_by_halves
from worker.sinks.encoding import Encoder
from worker.sinks.parts import chunked
from worker.sinks.refusals import check_at_once, driver_of, refusable
from worker.sinks.table import insert_statement, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Engine, Table

    from worker.sinks.aside import Aside
    from worker.sinks.base import Field
    from worker.sinks.fence import Owner
    from worker.sinks.parts import Part, Rows
    from worker.sinks.staging import Staging


class SqlTarget:
    """One task's table."""

    def __init__(
        self,
        engine: Engine,
        owner: Owner,
        table: Table,
        fields: Sequence[Field],
        *,
        stage_in: str | None,
        most_refused: int | None = None,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            engine: the database.
            owner: whose rows they are.
            table: where they go.
            fields: the query's columns.
            stage_in: the schema for staging, None for the database's own choice.
            most_refused: how many rows of a batch may be put aside because the database refuses them; None
                if one of them fails the batch.
        """
        self._table = table
        self.names = names_of(table)
        self._statement = insert_statement(table, engine.dialect)
        self._is_near = engine.dialect.name == "sqlite"
        self._encoder = Encoder(
            driver=engine.url.drivername,
            names=tuple(field.name for field in fields),
            kinds=tuple(str(field.type) for field in fields),
            keys=tuple(at for at, column in enumerate(table.columns) if column.primary_key),
            most_aside=most_refused,
        )
        self.staging: Staging = (
            staging_sqlite.SqliteStaging(engine, owner, table, self._encoder)
            if engine.dialect.name == "sqlite"
            else staging_postgres.PostgresStaging(engine, owner, table, self._encoder, stage_in)
        )

    def encoded(self, parts: Iterable[Part]) -> list[Part]:
        """The parts as the driver takes their rows; done before the transaction, to keep that short."""
        return [part if part.rows is None else self._encode(part, part.rows) for part in parts]

    def check(self, rows: Rows) -> None:
        """Raise `SchemaError` if the driver does not take one of them, and it is not put aside."""
        self._encoder.sorted_out(rows)

    def write(
        self, connection: Connection, parts: Sequence[Part], search: Search | None = None
    ) -> list[Aside]:
        """Put all parts into the table, partition by partition: of two rows with one key the last counts.

        Args:
            connection: in a transaction.
            parts: encoded.
            search: for rows that the database refuses; None if one of them fails the batch.

        Returns:
            The rows that the database has refused; one more than may be put aside, if there are more.
        """
        if search is None:
            self._put(connection, parts)
            return []
        try:
            with refusable(connection):
                self._put(connection, parts)
                check_at_once(connection)
        except RowsRefusedError:
            check_at_once(connection)
            return self._put_without_refused(connection, parts, search)
        return []

    def _encode(self, part: Part, rows: Rows) -> Part:
        encoded, refused = self._encoder.sorted_out(rows)
        aside = (*part.aside, *refused)
        left_out = part.left_out + counted(refused)
        return replace(part, rows=encoded, count=len(encoded), aside=aside, left_out=left_out)

    def _put(self, connection: Connection, parts: Sequence[Part]) -> None:
        for inline, group in groupby(parts, key=lambda part: part.rows is not None):
            if inline:
                self._insert(connection, [row for part in group for row in part.rows or ()])
            else:
                self.staging.move(connection, self._table, list(group))

    def _put_without_refused(
        self, connection: Connection, parts: Sequence[Part], search: Search
    ) -> list[Aside]:
        if any(part.rows is None for part in parts):
            self.staging.prepare_for_search(connection)
        refused: list[Aside] = []
        for part in parts:
            if not search.is_over:
                refused += self._of_part(connection, part, search)
        return refused

    def _of_part(self, connection: Connection, part: Part, search: Search) -> list[Aside]:
        """Put what is taken of a part, and return what is refused."""
        if part.rows is not None:
            put, one = (partial(of, connection, part.rows) for of in (self._put_some, self._put_one))
            found = put_by_halves(len(part.rows), put, search, one if self._is_near else None)
            return [self._encoder.refused(part.rows[each.at], each.why, each.public) for each in found]
        first, last = self.staging.positions(connection, part)
        put, one = (partial(of, connection, part, first) for of in (self._move_some, self._move_one))
        found = put_by_halves(last - first + 1, put, search, one if self._is_near else None)
        row = partial(self.staging.row, connection, self._table, part)
        return [self._encoder.refused(row(first + each.at), each.why, each.public) for each in found]

    def _put_some(self, connection: Connection, rows: Rows, some: range) -> None:
        with refusable(connection):
            self._insert(connection, rows[some.start : some.stop])

    def _put_one(self, connection: Connection, rows: Rows, at: int) -> None:
        with refusable(connection):
            driver_of(connection).execute(self._statement, rows[at])

    def _move_one(self, connection: Connection, part: Part, first: int, at: int) -> None:
        with refusable(connection):
            self.staging.move_one(connection, part, first + at)

    def _move_some(self, connection: Connection, part: Part, first: int, some: range) -> None:
        with refusable(connection):
            among = range(first + some.start, first + some.stop)
            self.staging.move_some(connection, self._table, part, among)

    def _insert(self, connection: Connection, rows: Rows) -> None:
        """Past SQLAlchemy's own handling of parameters: that costs three times the insert."""
        for chunk in chunked(iter(rows)):
            connection.exec_driver_sql(self._statement, chunk)
