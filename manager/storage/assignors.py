"""What members announced, for the groups of other managers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import select

from manager.core.rows import GroupRow, MemberRow
from manager.core.views.assignors import announced
from manager.storage.row_reader import read_table
from manager.storage.schema import TABLES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.membership import Protocol

GROUPS = TABLES[GroupRow]


def assignors(connection: Connection) -> list[GroupAssignors]:
    """Every group that has members, as it is stored."""
    lists: defaultdict[str, list[tuple[Protocol, ...]]] = defaultdict(list)
    for row in read_table(connection, MemberRow):
        if isinstance(row, MemberRow):
            lists[row.group].append(row.protocols)
    stored = connection.execute(
        select(GROUPS.c.group, GROUPS.c.protocol_type, GROUPS.c.protocol_name).order_by(GROUPS.c.group)
    )
    headers = [GroupRow(group=group, protocol_type=kind, protocol_name=name) for group, kind, name in stored]
    return [announced(header, lists[header.group]) for header in headers if header.group in lists]
