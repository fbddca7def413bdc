"""The fence rows in the sink's own database, where one transaction covers them and the rows they guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from protocol.definition import FENCE_TABLE
from worker.sinks.database import lock_tables
from worker.sinks.fence import FenceRow, Verdict, fenced, judge, refusal

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from worker.sinks.base import Batch, Owner

fence_table = sa.Table(
    FENCE_TABLE,
    sa.MetaData(),
    sa.Column("group_id", sa.String(249), primary_key=True),
    sa.Column("task", sa.String(249), primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("checkpoint_id", sa.Text),
    sa.Column("batch_id", sa.BigInteger),
    sa.Column("row_count", sa.BigInteger, nullable=False),
)


def create_fence_table(connection: Connection) -> None:
    """Make the table of fence rows unless it is there."""
    lock_tables(connection)
    connection.execute(CreateTable(fence_table, if_not_exists=True))


def raise_fence(connection: Connection, owner: Owner) -> None:
    """From here on nobody with a lower token than the owner's writes for its task.

    Raises:
        FencedError: a newer owner has done so before.
    """
    _insert_unless_there(connection, owner)
    stored = read_fence(connection, owner)
    if stored is None or stored.token == owner.token:
        return
    if stored.token > owner.token:
        raise fenced(owner, stored.token)
    connection.execute(fence_table.update().where(_row_of(owner)).values(token=owner.token))


def read_fence(connection: Connection, owner: Owner) -> FenceRow | None:
    """The fence row of the owner's task, locked until the end of the transaction."""
    columns = fence_table.c
    query = sa.select(columns.token, columns.checkpoint_id, columns.batch_id, columns.row_count)
    row = connection.execute(query.where(_row_of(owner)).with_for_update()).one_or_none()
    return None if row is None else FenceRow(*row)


def admit(connection: Connection, owner: Owner, batch: Batch) -> tuple[Verdict, FenceRow]:
    """WRITE or DUPLICATE, and the fence row before the batch.

    Raises:
        FencedError: the owner's token is not the newest any more.
        OutOfOrderError: the batch is not the next one, or of another checkpoint.
    """
    stored = read_fence(connection, owner)
    verdict = judge(stored, owner.token, batch.checkpoint, batch.batch_id)
    if stored is not None and verdict in {Verdict.WRITE, Verdict.DUPLICATE}:
        return verdict, stored
    raise refusal(verdict, owner, stored, batch.checkpoint, batch.batch_id)


def move_fence(connection: Connection, owner: Owner, batch: Batch, row_count: int) -> None:
    """The batch is the last one written; `row_count` is the task's total with it."""
    connection.execute(
        fence_table.update()
        .where(_row_of(owner))
        .values(
            token=owner.token,
            checkpoint_id=batch.checkpoint,
            batch_id=batch.batch_id,
            row_count=row_count,
        )
    )


def _insert_unless_there(connection: Connection, owner: Owner) -> None:
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(fence_table)
    row = {"group_id": owner.group, "task": owner.task, "token": owner.token, "row_count": 0}
    connection.execute(insert.values(row).on_conflict_do_nothing())


def _row_of(owner: Owner) -> ColumnElement[bool]:
    return sa.and_(fence_table.c.group_id == owner.group, fence_table.c.task == owner.task)
