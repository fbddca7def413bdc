"""The fence rows in the sink's own database, where one transaction covers them and the rows they guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from protocol.definition import FENCE_TABLE
from worker.sinks.database import lock_tables
from worker.sinks.fence import FenceRow, Verdict, judge, raised, refusal
from worker.sinks.marks import Mark

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from worker.sinks.marks import Owner

fence_table = sa.Table(
    FENCE_TABLE,
    sa.MetaData(),
    sa.Column("group_id", sa.String(249), primary_key=True),
    sa.Column("task", sa.String(500), primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("resets", sa.BigInteger, nullable=False),
    sa.Column("checkpoint_id", sa.Text),
    sa.Column("batch_id", sa.BigInteger),
    sa.Column("plan", sa.Text),
    sa.Column("row_count", sa.BigInteger, nullable=False),
)


def create_fence_table(connection: Connection) -> None:
    """Make the table of fence rows unless it is there."""
    if not has_fence_table(connection):
        lock_tables(connection)
        connection.execute(CreateTable(fence_table, if_not_exists=True))


def has_fence_table(connection: Connection) -> bool:
    """Whether any task has ever written to this database."""
    return sa.inspect(connection).has_table(FENCE_TABLE)


def raise_fence(connection: Connection, owner: Owner) -> FenceRow:
    """From here on nobody with a lower token than the owner's writes for its task.

    Raises:
        FencedError: a newer owner has done so before.
    """
    _insert_unless_there(connection, owner)
    stored = read_fence(connection, owner) or FenceRow(owner.token, owner.resets)
    row = raised(stored, owner)
    if row != stored:
        _store(connection, owner, row)
    return row


def read_fence(connection: Connection, owner: Owner) -> FenceRow | None:
    """The fence row of the owner's task, locked until the end of the transaction."""
    query = sa.select(fence_table).where(_row_of(owner)).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    last = None if row.batch_id is None else Mark(row.checkpoint_id, row.batch_id, row.plan)
    return FenceRow(row.token, row.resets, last, row.row_count)


def admit(connection: Connection, owner: Owner, mark: Mark) -> tuple[Verdict, FenceRow]:
    """WRITE or DUPLICATE, and the fence row before the batch.

    Raises:
        FencedError: the owner's token is not the newest any more.
        OutOfOrderError: the batch is not the next one, or of another checkpoint.
    """
    stored = read_fence(connection, owner)
    verdict = judge(stored, owner, mark)
    if stored is not None and verdict in {Verdict.WRITE, Verdict.DUPLICATE}:
        return verdict, stored
    raise refusal(verdict, owner, stored, mark)


def move_fence(connection: Connection, owner: Owner, mark: Mark, row_count: int) -> None:
    """The batch is the last one written; `row_count` is the task's total with it."""
    _store(connection, owner, FenceRow(owner.token, owner.resets, mark, row_count))


def _store(connection: Connection, owner: Owner, row: FenceRow) -> None:
    values = {
        "token": row.token,
        "resets": row.resets,
        "checkpoint_id": None if row.last is None else row.last.checkpoint,
        "batch_id": None if row.last is None else row.last.batch_id,
        "plan": None if row.last is None else row.last.plan,
        "row_count": row.rows,
    }
    connection.execute(fence_table.update().where(_row_of(owner)).values(values))


def _insert_unless_there(connection: Connection, owner: Owner) -> None:
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(fence_table)
    row = {
        "group_id": owner.group,
        "task": owner.task,
        "token": owner.token,
        "resets": owner.resets,
        "row_count": 0,
    }
    connection.execute(insert.values(row).on_conflict_do_nothing())


def _row_of(owner: Owner) -> ColumnElement[bool]:
    return sa.and_(fence_table.c.group_id == owner.group, fence_table.c.task == owner.task)
