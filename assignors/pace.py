"""The pace at which tasks move from member to member, whatever the assignor (protocol §5, Pace).

A task stands still from its stop at the one to its first batch at the other. Of several that start in one
Spark at the same time, each stands still for as long as the starts of all take. So a member is given a few at
once, and the others stay where they run until it asks for more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from assignors.eligibility import Eligibility
from assignors.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task


class Terms(NamedTuple):
    """All that a decision goes by but what changes while it is carried out: who owns what, and loads.

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
            {each.name: replace(each, load=None, token=0) for each in tasks},
        )


class Paced(NamedTuple):
    """An assignment of which a part may be put off; `awaiting` are the members to whom more is to come."""

    assignment: Assignment
    awaiting: frozenset[str] = frozenset()


def paced(dealt: Assignment, members: Sequence[Member], tasks: Sequence[Task], at_once: int) -> Paced:
    """`dealt`, of which each member starts `at_once` tasks at the same time, or what cannot be put off.

    Only what runs where it may go on is put off, the largest tasks first. At least one task moves to each
    member that is to have any, so that this comes to an end.

    Args:
        dealt: what an assignor has decided, within the members' limits.
        members: all who take part.
        tasks: all that were dealt.
        at_once: how many tasks a member may start at the same time; 0 for any number.
    """
    if not at_once:
        return Paced(dealt)
    stays = _where_tasks_may_stay(members, tasks)
    put_off = _put_off(dealt, members, stays, sizes(tasks), at_once)
    given = _with_stays(dealt, put_off, stays)
    if any(each.max_tasks is not None and len(given[each.member_id]) > each.max_tasks for each in members):
        return Paced(dealt)
    return Paced(dict(given), frozenset(put_off))


def _where_tasks_may_stay(members: Sequence[Member], tasks: Sequence[Task]) -> dict[str, str]:
    """The member that runs each task, where that is one that may."""
    eligible = Eligibility(members)
    by_name = {task.name: task for task in tasks}
    return {
        name: member.member_id
        for at, member in enumerate(members)
        for name in member.owned & by_name.keys()
        if at in eligible.of(by_name[name])
    }


def _put_off(
    dealt: Assignment,
    members: Sequence[Member],
    stays: Mapping[str, str],
    size: Mapping[str, int],
    at_once: int,
) -> dict[str, set[str]]:
    """What each member does not get yet, of those that are to wait for something."""
    found = {}
    for member in members:
        new = [name for name in dealt.get(member.member_id, ()) if name not in member.owned]
        moves = sorted((name for name in new if name in stays), key=lambda name: (size[name], name))
        room = max(at_once - (len(new) - len(moves)), 1)
        if rest := moves[room:]:
            found[member.member_id] = set(rest)
    return found


def _with_stays(
    dealt: Assignment, put_off: Mapping[str, Iterable[str]], stays: Mapping[str, str]
) -> defaultdict[str, list[str]]:
    """What is put off stays where it is."""
    given: defaultdict[str, list[str]] = defaultdict(list)
    for member_id, names in dealt.items():
        given[member_id] += [name for name in names if name not in put_off.get(member_id, ())]
    for rest in put_off.values():
        for name in sorted(rest):
            given[stays[name]].append(name)
    return given
