"""All groups in figures, for the overview of a manager that does not have them all."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import Text, case, cast, func, select

from manager.core.rows import MemberRow, OwnershipRow, TaskRow
from manager.core.views.tallies import TROUBLED, TROUBLES_TOLD, Tally, Trouble, first_line
from manager.storage.schema import TABLES
from manager.storage.summaries import summaries
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

MEMBERS, TASKS, OWNERSHIP = (TABLES[kind] for kind in (MemberRow, TaskRow, OwnershipRow))
TASKS_AND_OWNERS = TASKS.outerjoin(
    OWNERSHIP, (TASKS.c.group == OWNERSHIP.c.group) & (TASKS.c.task == OWNERSHIP.c.task)
)
shown_state = func.coalesce(cast(OWNERSHIP.c.state, Text), TaskState.UNASSIGNED.value)


def tallies(connection: Connection) -> list[Tally]:
    """Every group as it is stored; why a task is nobody's is known in the memory of its manager only."""
    states = _states(connection)
    troubles = _troubles(connection)
    draining = _draining(connection)
    return [
        Tally(
            group=line.group,
            state=line.state,
            generation_id=line.generation_id,
            workers=line.members,
            draining=draining[line.group],
            tasks=dict(states[line.group]),
            troubles=tuple(troubles[line.group]),
        )
        for line in summaries(connection)
    ]


def _states(connection: Connection) -> Mapping[str, Counter[str]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    asked = (
        select(TASKS.c.group, shown_state, func.count())
        .select_from(TASKS_AND_OWNERS)
        .group_by(TASKS.c.group, shown_state)
    )
    for group, state, count in connection.execute(asked):
        counts[group][state] = count
    return counts


def _troubles(connection: Connection) -> Mapping[str, list[Trouble]]:
    """The worst of each group, so that one of thousands does not hide the others."""
    severity = case(*((shown_state == state.value, rank) for rank, state in enumerate(TROUBLED)))
    rank = func.row_number().over(partition_by=TASKS.c.group, order_by=(severity, TASKS.c.task))
    ranked = (
        select(TASKS.c.group, TASKS.c.task, shown_state.label("state"), OWNERSHIP.c.cause, rank.label("rank"))
        .select_from(TASKS_AND_OWNERS)
        .where(shown_state.in_([state.value for state in TROUBLED]))
        .subquery()
    )
    found: defaultdict[str, list[Trouble]] = defaultdict(list)
    worst = select(ranked).where(ranked.c.rank <= TROUBLES_TOLD).order_by(ranked.c.group, ranked.c.rank)
    for row in connection.execute(worst):
        found[row.group].append(Trouble(row.task, row.state, first_line(row.cause)))
    return found


def _draining(connection: Connection) -> Counter[str]:
    asked = select(MEMBERS.c.group, func.count()).where(MEMBERS.c.draining).group_by(MEMBERS.c.group)
    return Counter({group: count for group, count in connection.execute(asked)})  # noqa: C416 - as in summaries
