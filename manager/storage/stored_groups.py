"""The groups of other managers, as they are stored: a line, figures and assignors of each, by name.

What is told of a group, and how, is said by `manager.core.views`; here is only what it is told from. None of
it reads what the groups are made of: a cluster may have many more tasks than one manager can hold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Table, Text, cast, func, select

from manager.core.stored_rows import GroupRow, MemberRow, OffsetRow, OwnershipRow, Row, TaskRow
from manager.core.views import groups
from manager.core.views.group_status import TROUBLED, TROUBLES_TOLD, status
from manager.storage.row_reader import read_table
from manager.storage.schema import TABLES
from protocol.messages.groups import GroupSummary
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from manager.core.views.group_status import GroupStatus
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.membership import Protocol

GROUPS, MEMBERS, OFFSETS, TASKS, OWNERSHIP = (
    TABLES[kind] for kind in (GroupRow, MemberRow, OffsetRow, TaskRow, OwnershipRow)
)
TASKS_AND_OWNERS = TASKS.outerjoin(
    OWNERSHIP, (TASKS.c.group == OWNERSHIP.c.group) & (TASKS.c.task == OWNERSHIP.c.task)
)
STATE = func.coalesce(cast(OWNERSHIP.c.state, Text), TaskState.UNASSIGNED.value)


def summaries(connection: Connection) -> list[GroupSummary]:
    """A line for each group; one between two assignments shows as PreparingRebalance."""
    members, offsets, tasks = [_counted(connection, table) for table in (MEMBERS, OFFSETS, TASKS)]
    headers = {row.group: row for row in read_table(connection, GroupRow)}
    names = {n for n, row in headers.items() if _exists(row)} | members.keys() | offsets.keys() | tasks.keys()
    lines = [_line(name, headers.get(name, GroupRow(group=name))) for name in sorted(names)]
    return [
        msgspec.structs.replace(line, members=members[line.group], tasks=tasks[line.group]) for line in lines
    ]


def group_statuses(connection: Connection) -> list[GroupStatus]:
    """The figures of each group; why a task is nobody's is known in the memory of its manager only."""
    counts, draining, troubled = _states(connection), _draining(connection), _troubled(connection)
    return [
        status(
            line,
            counts[line.group],
            draining[line.group],
            {task: state for task, (state, _) in troubled[line.group].items()},
            {task: cause for task, (_, cause) in troubled[line.group].items()}.get,
        )
        for line in summaries(connection)
    ]


def announced_assignors(connection: Connection) -> list[GroupAssignors]:
    """What the members of each group that has some announce."""
    lists: defaultdict[str, list[tuple[Protocol, ...]]] = defaultdict(list)
    for row in read_table(connection, MemberRow):
        if isinstance(row, MemberRow):
            lists[row.group].append(row.protocols)
    stored = connection.execute(
        select(GROUPS.c.group, GROUPS.c.protocol_type, GROUPS.c.protocol_name).order_by(GROUPS.c.group)
    )
    headers = [GroupRow(group=group, protocol_type=kind, protocol_name=name) for group, kind, name in stored]
    return [
        groups.announced_assignors(header, lists[header.group]) for header in headers if header.group in lists
    ]


def _exists(header: Row) -> bool:
    return not isinstance(header, GroupRow) or header.generation > 0


def _line(name: str, header: Row) -> GroupSummary:
    if not isinstance(header, GroupRow):
        return groups.unreadable(name)
    return GroupSummary(name, header.state.value, header.protocol_type, header.generation, members=0, tasks=0)


def _counted(connection: Connection, table: Table) -> Counter[str]:
    counts = connection.execute(select(table.c.group, func.count()).group_by(table.c.group))
    return Counter({name: count for name, count in counts})  # noqa: C416 - rows are no pairs to mypy


def _draining(connection: Connection) -> Counter[str]:
    asked = select(MEMBERS.c.group, func.count()).where(MEMBERS.c.draining).group_by(MEMBERS.c.group)
    return Counter({group: count for group, count in connection.execute(asked)})  # noqa: C416 - as above


def _states(connection: Connection) -> Mapping[str, Counter[str]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    asked = select(TASKS.c.group, STATE, func.count()).select_from(TASKS_AND_OWNERS)
    for group, state, count in connection.execute(asked.group_by(TASKS.c.group, STATE)):
        counts[group][state] = count
    return counts


def _troubled(connection: Connection) -> Mapping[str, dict[str, tuple[str, str | None]]]:
    """State and cause by task; of each group and state no more than are told, for there may be thousands."""
    place = func.row_number().over(partition_by=(TASKS.c.group, STATE), order_by=TASKS.c.task).label("place")
    placed = (
        select(TASKS.c.group, TASKS.c.task, STATE.label("state"), OWNERSHIP.c.cause, place)
        .select_from(TASKS_AND_OWNERS)
        .where(STATE.in_([state.value for state in TROUBLED]))
        .subquery()
    )
    found: defaultdict[str, dict[str, tuple[str, str | None]]] = defaultdict(dict)
    for row in connection.execute(select(placed).where(placed.c.place <= TROUBLES_TOLD)):
        found[row.group][row.task] = row.state, row.cause
    return found
