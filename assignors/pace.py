"""The pace at which tasks move from member to member, whatever the assignor (protocol §5, Pace).

A task stands still from its stop at the one to its first batch at the other. Of several that start in one
Spark at the same time, each stands still for as long as the starts of all take. So a member is given a few at
once, and the others stay where they run until it asks for more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from assignors.eligibility import Eligibility
from assignors.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task


class Terms(NamedTuple):
    """All that a decision goes by but what changes while it is carried out: who owns what, loads and lags.

    While they stay the same, the rest of a decision is carried out as it was made.
    """

    assignor: str
    members: Mapping[str, Member]
    tasks: Mapping[str, Task]

    @classmethod
    def of(cls, assignor: str, members: Iterable[Member], tasks: Iterable[Task]) -> Terms:
        """Those that the assignor of this name has decided by."""
        return cls(
            assignor,
            {each.member_id: replace(each, owned=frozenset()) for each in members},
            {each.name: replace(each, load=None, token=0, lag=None) for each in tasks},
        )


class Progress(NamedTuple):
    """How far decisions are carried out.

    `running` is who has each task, by its token: what a member only is to have back runs nowhere. `starting`
    is what each member was given and has not started yet, as it says itself. `given` is the assignment
    before: what a member was given then is on its way, even if it still runs elsewhere.
    """

    running: Mapping[str, str]
    starting: Mapping[str, Collection[str]]
    given: Mapping[str, Collection[str]]


class Paced(NamedTuple):
    """An assignment of which a part may be put off; `to_come` is how many tasks each member is to have later.

    Members for whom nothing is put off are not in it.
    """

    assignment: Assignment
    to_come: Mapping[str, int] = MappingProxyType({})


def paced(
    dealt: Assignment, members: Sequence[Member], tasks: Sequence[Task], at_once: int, progress: Progress
) -> Paced:
    """`dealt`, of which each member starts `at_once` tasks at the same time, or what cannot be put off.

    Only what runs where it may go on is put off, first what is furthest behind, then the largest tasks: they
    take longest to start. At least one task moves to each member that is to have any and starts none, so that
    this comes to an end.

    Args:
        dealt: what an assignor has decided, within the members' limits.
        members: all who take part.
        tasks: all that were dealt.
        at_once: how many tasks a member may start at the same time; 0 for any number.
        progress: how far decisions are carried out.
    """
    if not at_once:
        return Paced(dealt)
    stays = _where_tasks_may_stay(members, tasks, progress.running)
    place = _order(tasks)
    put_off = {
        name: member_id
        for member_id, names in dealt.items()
        for name in _put_off(member_id, names, at_once=at_once, stays=stays, place=place, progress=progress)
    }
    _keep_limits(dealt, put_off, members, place, stays)
    return Paced(_with_stays(dealt, put_off, stays), Counter(put_off.values()))


def _order(tasks: Sequence[Task]) -> dict[str, int]:
    """In which place each task moves; one whose lag is not known goes by its size alone."""
    size = sizes(tasks)
    ordered = sorted(tasks, key=lambda task: (task.lag or 0, size[task.name], task.name))
    return {task.name: at for at, task in enumerate(ordered)}


def _where_tasks_may_stay(
    members: Sequence[Member], tasks: Sequence[Task], running: Mapping[str, str]
) -> dict[str, str]:
    """The member that runs each task, where that is one that may."""
    eligible = Eligibility(members)
    places = {member.member_id: at for at, member in enumerate(members)}
    return {
        task.name: running[task.name]
        for task in tasks
        if places.get(running.get(task.name, "")) in eligible.of(task)
    }


def _put_off(
    member_id: str,
    names: Iterable[str],
    *,
    at_once: int,
    stays: Mapping[str, str],
    place: Mapping[str, int],
    progress: Progress,
) -> list[str]:
    """What a member does not get yet of what it was dealt; those with the first places move first."""
    starting = set(progress.starting.get(member_id, ()))
    known = starting | set(progress.given.get(member_id, ()))
    coming = [name for name in names if progress.running.get(name) != member_id]
    moves = sorted((name for name in coming if name in stays and name not in known), key=place.__getitem__)
    unavoidable = [name for name in coming if name not in stays and name not in starting]
    under_way = len(starting.intersection(names))
    room = at_once - under_way - len(unavoidable)
    return moves[max(room, 0 if under_way else 1) :]


def _keep_limits(
    dealt: Assignment,
    put_off: dict[str, str],
    members: Sequence[Member],
    place: Mapping[str, int],
    stays: Mapping[str, str],
) -> None:
    """What stays must not be too much beside what comes: of members with too many, the first move at once.

    Whoever gets these may have too many then, but in the end no more than it was dealt.
    """
    limits = {member.member_id: member.max_tasks for member in members if member.max_tasks is not None}
    while crowded := _crowded(dealt, put_off, limits, place, stays):
        for name in crowded:
            del put_off[name]


def _crowded(
    dealt: Assignment,
    put_off: Mapping[str, str],
    limits: Mapping[str, int],
    place: Mapping[str, int],
    stays: Mapping[str, str],
) -> list[str]:
    """The tasks that stay where there is no room for them."""
    staying: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(put_off, key=place.__getitem__):
        staying[stays[name]].append(name)
    later = Counter(put_off.values())
    given = {member_id: len(dealt.get(member_id, ())) - later[member_id] for member_id in limits}
    room = {member_id: max(limit - given[member_id], 0) for member_id, limit in limits.items()}
    return [
        name
        for member_id, names in staying.items()
        for name in names[: max(len(names) - room.get(member_id, len(names)), 0)]
    ]


def _with_stays(dealt: Assignment, put_off: Mapping[str, str], stays: Mapping[str, str]) -> Assignment:
    """What is put off stays where it is."""
    given = {member_id: [name for name in names if name not in put_off] for member_id, names in dealt.items()}
    for name in sorted(put_off):
        given.setdefault(stays[name], []).append(name)
    return given
