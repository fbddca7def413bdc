"""A quarantine in a table of SQLite or PostgreSQL, for those who look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from worker.sinks.database import place, transaction
from worker.sinks.errors import SinkError
from worker.sinks.quarantine.rows import FIELDS, KEY
from worker.sinks.quarantine.store import Found, QuarantineStore, StoredRow
from worker.sinks.table import describe_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine

    from definition.tables import TableName
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.store import Choice


class SqlStore(QuarantineStore):
    """One task's rows in one table; the table may not be there yet."""

    def __init__(self, engine: Engine, name: TableName, owner: Owner) -> None:
        """`owner` says whose rows."""
        self._engine = engine
        self._table = describe_table(name, FIELDS, KEY)
        self._owner = owner

    @property
    def place(self) -> str:
        """The database and the table."""
        return f"{place(self._engine)}, table {self._table.name}"

    def find(self, choice: Choice, limit: int) -> Found:
        """In one look."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return Found((), 0)
            chosen = self._chosen(choice)
            number = connection.execute(sa.select(sa.func.count()).select_from(self._table).where(chosen))
            return Found(self._rows(connection, chosen, limit), number.scalar_one())

    def discard(self, choice: Choice) -> int:
        """In one transaction."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return 0
            free = sa.and_(self._chosen(choice), self._table.c.replay.is_(None))
            return connection.execute(self._table.delete().where(free)).rowcount

    def take(self, choice: Choice, replay: str, limit: int) -> Sequence[StoredRow]:
        """In one transaction: whoever comes later finds them taken."""
        with transaction(self._engine) as connection:
            if not self._is_there(connection):
                return ()
            free = sa.and_(self._chosen(choice), self._table.c.replay.is_(None))
            ids = [row.id for row in self._rows(connection, free, limit)]
            for some in _chunks(ids):
                taken = sa.and_(self._id.in_(some), self._mine, self._table.c.replay.is_(None))
                connection.execute(self._table.update().where(taken).values(replay=replay))
            return self._rows(connection, self._of(replay), limit)

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

    def remove(self, connection: Connection, ids: Sequence[str]) -> None:
        """Remove rows in somebody else's transaction.

        Raises:
            SinkError: some are not there any more.
        """
        number = 0
        for some in _chunks(ids):
            those = sa.and_(self._mine, self._id.in_(some), self._table.c.replay.is_(None))
            number += connection.execute(self._table.delete().where(those)).rowcount
        if number != len(ids):
            raise SinkError(f"of {len(ids)} rows in {self.place} {len(ids) - number} are gone: ask again")

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

    def _rows(self, connection: Connection, chosen: ColumnElement[bool], limit: int) -> list[StoredRow]:
        columns = self._table.c
        wanted = sa.select(*(columns[name] for name in StoredRow._fields)).where(chosen)
        order = (columns.resets.desc(), columns.batch_id.desc(), columns.nth)
        return [StoredRow(*row) for row in connection.execute(wanted.order_by(*order).limit(limit))]

    def _is_there(self, connection: Connection) -> bool:
        return sa.inspect(connection).has_table(self._table.name, schema=self._table.schema)


def _chunks(ids: Sequence[str]) -> list[Sequence[str]]:
    """As many as one statement takes."""
    return [ids[at : at + 500] for at in range(0, len(ids), 500)]
