"""The fence rows in the sink's own database, where one transaction covers them and the rows they guard."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from definition.sinks.sql import FENCE_TABLE
from worker.sinks.database import lock_tables
from worker.sinks.fence import FenceRow, Mark, Verdict, admits, raised, refusal
from worker.sinks.table import names_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row, Select

    from worker.sinks.fence import Owner


@lru_cache(maxsize=64)
def _table(schema: str | None) -> sa.Table:
    """The same one each time: SQLAlchemy knows a statement that it has compiled by the tables in it."""
    return sa.Table(
        FENCE_TABLE,
        sa.MetaData(schema=schema, quote_schema=True),
        sa.Column("group_id", sa.String(249), primary_key=True),
        sa.Column("task", sa.String(500), primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("resets", sa.BigInteger, nullable=False),
        sa.Column("checkpoint_id", sa.Text),
        sa.Column("batch_id", sa.BigInteger),
        sa.Column("plan", sa.Text),
        sa.Column("row_count", sa.BigInteger, nullable=False),
    )


class FenceTable:
    """The fence rows of all tasks that write to one database."""

    def __init__(self, schema: str | None = None) -> None:
        """`schema` is where the table is in PostgreSQL; without it, where a connection finds it by itself."""
        self.schema = schema
        self._table = _table(schema)

    @property
    def names(self) -> set[str]:
        """Those in its statements."""
        return names_of(self._table)

    def create(self, connection: Connection) -> None:
        """Make the table unless it is there."""
        if not self.exists(connection):
            lock_tables(connection)
            connection.execute(CreateTable(self._table, if_not_exists=True))

    def exists(self, connection: Connection) -> bool:
        """Whether any task has ever written to this database."""
        return sa.inspect(connection).has_table(FENCE_TABLE, schema=self.schema)

    def claim(self, connection: Connection, owner: Owner) -> FenceRow:
        """From here on nobody with a lower token than the owner's writes for its task.

        Raises:
            FencedError: a newer owner has done so before.
        """
        self.enter(connection, owner)
        stored = self.read(connection, owner) or FenceRow(owner.token, owner.resets)
        row = raised(stored, owner)
        if row != stored:
            self._store(connection, owner, row)
        return row

    def enter(self, connection: Connection, owner: Owner) -> None:
        """Have a row for the owner's task; one that is there stays as it is."""
        insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(self._table)
        row = {
            "group_id": owner.group,
            "task": owner.task,
            "token": owner.token,
            "resets": owner.resets,
            "row_count": 0,
        }
        connection.execute(insert.values(row).on_conflict_do_nothing())

    def peek(self, connection: Connection, owner: Owner) -> FenceRow | None:
        """The fence row of the owner's task as it is now, None if there is none."""
        return _as_row(connection.execute(self._query(owner)).one_or_none())

    def read(self, connection: Connection, owner: Owner) -> FenceRow | None:
        """The fence row of the owner's task, locked until the transaction ends; None if there is none."""
        return _as_row(connection.execute(self._query(owner).with_for_update()).one_or_none())

    def admit(self, connection: Connection, owner: Owner, mark: Mark) -> tuple[bool, FenceRow]:
        """Whether a batch is to be written, and the fence row before it.

        Raises:
            SinkError: as `worker.sinks.fence.admits`.
        """
        stored = self.read(connection, owner)
        if stored is None:
            raise refusal(Verdict.UNCLAIMED, owner, None, mark)
        return admits(stored, owner, mark), stored

    def move(self, connection: Connection, owner: Owner, mark: Mark, row_count: int) -> None:
        """The batch is the last one written; `row_count` is the task's total with it."""
        self._store(connection, owner, FenceRow(owner.token, owner.resets, mark, row_count))

    def count(self, connection: Connection, owner: Owner, row_count: int) -> None:
        """The task's total, of which no batch tells: rows that were played again are of none."""
        connection.execute(self._table.update().where(self._row_of(owner)).values(row_count=row_count))

    def _store(self, connection: Connection, owner: Owner, row: FenceRow) -> None:
        values = {
            "token": row.token,
            "resets": row.resets,
            "checkpoint_id": None if row.last is None else row.last.checkpoint,
            "batch_id": None if row.last is None else row.last.batch_id,
            "plan": None if row.last is None else row.last.plan,
            "row_count": row.rows,
        }
        connection.execute(self._table.update().where(self._row_of(owner)).values(values))

    def _query(self, owner: Owner) -> Select[Any]:
        return sa.select(self._table).where(self._row_of(owner))

    def _row_of(self, owner: Owner) -> ColumnElement[bool]:
        columns = self._table.c
        return sa.and_(columns.group_id == owner.group, columns.task == owner.task)


def _as_row(row: Row[Any] | None) -> FenceRow | None:
    if row is None:
        return None
    last = None if row.batch_id is None else Mark(row.checkpoint_id, row.batch_id, row.plan)
    return FenceRow(row.token, row.resets, last, row.row_count)
