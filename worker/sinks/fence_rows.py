"""A task's fence row, in whichever of the database's fence tables it is.

All owners of a task have to meet at one row. Which table a new task takes depends on what the role finds and
owns, and that changes while tasks run: another table is made, copied, or handed to the role. So only the
first owner goes by that; it leaves a row, and all later ones go where the row is. Where a task has rows in
several tables, each is raised, so that a former owner is refused at whichever it knows; the one furthest on
counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker.sinks.database import lock_owners
from worker.sinks.schemas import fence_tables, make_fence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from worker.sinks.fence import FenceRow, Owner
    from worker.sinks.fence_table import FenceTable


def enter_fence(
    connection: Connection, owner: Owner, *, anywhere: bool, beside: str | None = None
) -> list[FenceTable]:
    """The fence tables that have a row of the owner's task; if none has, the first one gets it.

    Owners of the task that come together do so one after the other: each might choose another table else.

    Args:
        connection: in a transaction.
        owner: whose task it is.
        anywhere: as in `worker.sinks.schemas.fence_tables`.
        beside: as in `worker.sinks.schemas.make_fence`.
    """
    if not (there := _with_row(connection, owner, anywhere=anywhere)):
        lock_owners(connection, owner)
        there = _with_row(connection, owner, anywhere=anywhere)
    if there:
        return there
    fence = make_fence(connection, anywhere=anywhere, beside=beside)
    fence.enter(connection, owner)
    return [fence]


def claim_fence(
    connection: Connection, owner: Owner, fences: Sequence[FenceTable]
) -> tuple[FenceTable, FenceRow]:
    """Raise the task's row in each of `fences`; the table that counts, and its row.

    Raises:
        FencedError: a newer owner has claimed one of them before.
    """
    rows = [(fence, fence.claim(connection, owner)) for fence in fences]
    return max(rows, key=lambda each: _reached(each[1]))


def newest_row(connection: Connection, owner: Owner) -> FenceRow | None:
    """What the next owner meets: how far the task has come, and the highest token; None before the first."""
    tables = fence_tables(connection, anywhere=True)
    rows = [row for fence in tables if (row := fence.peek(connection, owner)) is not None]
    if not rows:
        return None
    return replace(max(rows, key=_reached), token=max(row.token for row in rows))


def _with_row(connection: Connection, owner: Owner, *, anywhere: bool) -> list[FenceTable]:
    tables = fence_tables(connection, anywhere=anywhere)
    return [fence for fence in tables if fence.peek(connection, owner) is not None]


def _reached(row: FenceRow) -> tuple[int, int]:
    return row.resets, -1 if row.last is None else row.last.batch_id
