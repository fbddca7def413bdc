"""A quarantine in a table of SQLite or PostgreSQL, for those who look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from worker.sinks.database import place, transaction
from worker.sinks.errors import SinkError
from worker.sinks.quarantine.rows import FIELDS, KEY
from worker.sinks.quarantine.store import WHOLE, Found, QuarantineStore, StoredRow, bytes_of
from worker.sinks.table import describe_table, names_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine

    from definition.tables import TableName
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.store import Choice

_WHOLE: Final = sa.text(WHOLE)


class SqlStore(QuarantineStore):
    """One task's rows in one table; the table may not be there yet."""

    def __init__(self, engine: Engine, name: TableName, owner: Owner) -> None:
        """`owner` says whose rows."""
        self._engine = engine
        self._table = describe_table(name, FIELDS, KEY)
        self._owner = owner

    @property
    def names(self) -> set[str]:
        """Those in its statements."""
        return names_of(self._table)

    @property
    def place(self) -> str:
        """The database and the table."""
        return f"{place(self._engine)}, table {self._table.name}"

    def find(self, choice: Choice, limit: int, *, oldest_first: bool = False) -> Found:
        """In one look."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return Found((), 0)
            chosen = self._chosen(choice)
            whole = sa.and_(chosen, _WHOLE)
            rows = self._rows(connection, whole, limit, oldest_first=oldest_first)
            total = self._number(connection, whole)
            return Found(rows, total, self._number(connection, chosen) - total)

    def discard(self, choice: Choice) -> int:
        """In one transaction."""
        with transaction(self._engine) as connection:
            return self.discard_in(connection, choice)

    def discard_in(self, connection: Connection, choice: Choice) -> int:
        """As `discard`, in somebody else's transaction."""
        if not self._is_there(connection):
            return 0
        free = sa.and_(self._chosen(choice), self._table.c.replay.is_(None))
        return connection.execute(self._table.delete().where(free)).rowcount

    def take(self, choice: Choice, replay: str, limit: int) -> Sequence[StoredRow]:
        """In one transaction: whoever comes later finds them taken."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return ()
            free = sa.and_(self._chosen(choice), _WHOLE, self._table.c.replay.is_(None))
            ids = [row.id for row in self._rows(connection, free, limit, oldest_first=True)]
            for some in _chunks(ids):
                taken = sa.and_(self._id.in_(some), self._mine, self._table.c.replay.is_(None))
                connection.execute(self._table.update().where(taken).values(replay=replay))
            return self._rows(connection, self._of(replay), limit, oldest_first=True)

    def give_back(self, replay: str, ids: Collection[str] | None = None) -> None:
        """Others may take them."""
        with transaction(self._engine) as connection:
            for some in [None] if ids is None else _chunks(sorted(ids)):
                those = self._of(replay) if some is None else sa.and_(self._of(replay), self._id.in_(some))
                connection.execute(self._table.update().where(those).values(replay=None))

    def finish(self, replay: str) -> int:
        """In one transaction."""
        with transaction(self._engine) as connection:
            return connection.execute(self._table.delete().where(self._of(replay))).rowcount

    def replays(self) -> Sequence[str]:
        """By their rows."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return ()
            column = self._table.c.replay
            found = sa.select(column).where(self._mine, column.is_not(None)).distinct()
            return connection.execute(found).scalars().all()

    def remove(self, connection: Connection, rows: Sequence[StoredRow]) -> None:
        """Remove rows in somebody else's transaction, as they were read.

        Raises:
            SinkError: some are not there any more, or were changed since, as people do who mend them.
        """
        as_read = {row.id: bytes(row.raw) for row in rows}
        found = 0
        for some in _chunks(sorted(as_read)):
            those = sa.and_(self._mine, self._id.in_(some), self._table.c.replay.is_(None))
            raw = _as_it_is(self._table.c.raw)
            there = connection.execute(sa.select(self._id, raw).where(those)).all()
            found += sum(as_read[row] == bytes_of(raw) for row, raw in there)
            connection.execute(self._table.delete().where(those))
        if found != len(as_read):
            changed = len(as_read) - found
            raise SinkError(
                f"{changed} of {len(as_read)} rows in {self.place} were changed or taken: ask again"
            )

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @property
    def _mine(self) -> ColumnElement[bool]:
        columns = self._table.c
        return sa.and_(columns.group_id == self._owner.group, columns.task == self._owner.task)

    @property
    def _id(self) -> ColumnElement[str]:
        parts = [sa.cast(self._table.c[name], sa.Text) for name in ("resets", "batch_id", "nth")]
        return parts[0] + "-" + parts[1] + "-" + parts[2]

    def _of(self, replay: str) -> ColumnElement[bool]:
        return sa.and_(self._mine, self._table.c.replay == replay)

    def _chosen(self, choice: Choice) -> ColumnElement[bool]:
        columns, wanted = self._table.c, [self._mine]
        if choice.ids:
            wanted.append(self._id.in_(choice.ids))
        if choice.reason is not None:
            wanted.append(columns.reason == choice.reason)
        if choice.name is not None:
            among: Any = sa.literal(", ") + columns.name + ", "
            wanted.append(among.contains(f", {choice.name}, ", autoescape=True))
        return sa.and_(*wanted)

    def _rows(
        self, connection: Connection, chosen: ColumnElement[bool], limit: int, *, oldest_first: bool = False
    ) -> list[StoredRow]:
        columns = self._table.c
        wanted = sa.select(*(self._column(name) for name in StoredRow._fields)).where(chosen)
        newest = (columns.resets.desc(), columns.batch_id.desc(), columns.nth)
        order = (columns.resets, columns.batch_id, columns.nth) if oldest_first else newest
        found = map(StoredRow.of, connection.execute(wanted.order_by(*order).limit(limit)))
        return [row for row in found if row.is_whole]

    def _column(self, name: str) -> ColumnElement[Any]:
        """As it is there, of whatever kind; of PostgreSQL's times there are some that Python has not."""
        column = self._table.c[name]
        if name == "put_aside_at" and self._engine.dialect.name == "postgresql":
            return sa.extract("epoch", column)
        return _as_it_is(column)

    def _number(self, connection: Connection, chosen: ColumnElement[bool]) -> int:
        return connection.execute(
            sa.select(sa.func.count()).select_from(self._table).where(chosen)
        ).scalar_one()

    def _is_there(self, connection: Connection) -> bool:
        return sa.inspect(connection).has_table(self._table.name, schema=self._table.schema)


def _as_it_is(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """What the driver has for it: SQLite keeps anything anywhere."""
    return sa.type_coerce(column, sa.types.NullType())


def _chunks(ids: Sequence[str]) -> list[Sequence[str]]:
    """As many as one statement takes."""
    return [ids[at : at + 500] for at in range(0, len(ids), 500)]
