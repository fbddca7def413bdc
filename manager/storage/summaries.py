"""All groups in one line each, without reading what they are made of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import Table, func, select

from manager.core.rows import GroupRow, MemberRow, OffsetRow, TaskRow
from manager.storage.schema import TABLES
from protocol.messages.groups import GroupSummary
from protocol.states import GroupState

if TYPE_CHECKING:
    from sqlalchemy import Connection

GROUPS, MEMBERS, OFFSETS, TASKS = (TABLES[kind] for kind in (GroupRow, MemberRow, OffsetRow, TaskRow))


def summaries(connection: Connection) -> list[GroupSummary]:
    """Every group as it is stored; one between two assignments shows as PreparingRebalance."""
    members, offsets, tasks = [_counted(connection, table) for table in (MEMBERS, OFFSETS, TASKS)]
    rows = {row.group: row for row in connection.execute(select(GROUPS))}
    names = {n for n, row in rows.items() if row.generation} | members.keys() | offsets.keys() | tasks.keys()
    unknown = GroupRow(group="")
    return [
        GroupSummary(
            group=name,
            state=GroupState(rows.get(name, unknown).state).value,
            protocol_type=rows.get(name, unknown).protocol_type,
            generation_id=rows.get(name, unknown).generation,
            members=members[name],
            tasks=tasks[name],
        )
        for name in sorted(names)
    ]


def _counted(connection: Connection, table: Table) -> Counter[str]:
    counts = connection.execute(select(table.c.group, func.count()).group_by(table.c.group))
    return Counter({name: count for name, count in counts})  # noqa: C416 - rows are no pairs to mypy
