"""All groups in one line each, without reading what they are made of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Table, func, select

from manager.core.rows import GroupRow, MemberRow, OffsetRow, Row, TaskRow
from manager.core.views.groups import unreadable
from manager.storage.row_reader import read_table
from manager.storage.schema import TABLES
from protocol.messages.groups import GroupSummary

if TYPE_CHECKING:
    from sqlalchemy import Connection

MEMBERS, OFFSETS, TASKS = (TABLES[kind] for kind in (MemberRow, OffsetRow, TaskRow))


def summaries(connection: Connection) -> list[GroupSummary]:
    """Every group as it is stored; one between two assignments shows as PreparingRebalance."""
    members, offsets, tasks = [_counted(connection, table) for table in (MEMBERS, OFFSETS, TASKS)]
    headers = {row.group: row for row in read_table(connection, GroupRow)}
    names = {n for n, row in headers.items() if _exists(row)} | members.keys() | offsets.keys() | tasks.keys()
    lines = [_line(name, headers.get(name, GroupRow(group=name))) for name in sorted(names)]
    return [
        msgspec.structs.replace(line, members=members[line.group], tasks=tasks[line.group]) for line in lines
    ]


def _exists(header: Row) -> bool:
    return not isinstance(header, GroupRow) or header.generation > 0


def _line(name: str, header: Row) -> GroupSummary:
    if not isinstance(header, GroupRow):
        return unreadable(name)
    return GroupSummary(name, header.state.value, header.protocol_type, header.generation, members=0, tasks=0)


def _counted(connection: Connection, table: Table) -> Counter[str]:
    counts = connection.execute(select(table.c.group, func.count()).group_by(table.c.group))
    return Counter({name: count for name, count in counts})  # noqa: C416 - rows are no pairs to mypy
