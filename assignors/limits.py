"""No member is given more than its `max_tasks`, whatever the assignor.

Where an assignor deals a member too much, the member keeps as many as it may have, those that run there
first. The others are dealt again, by the same assignor, to the members that are not full, so that they are
laid out as it would. What is over after a few rounds, or may run on full members only, is seated wherever it
fits (`assignors.seating`). What fits nowhere is left out.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from assignors.eligibility import Eligibility
from assignors.seating import Seating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task
    from assignors.eligibility import Members

Ask: TypeAlias = "Callable[[Sequence[Member], Sequence[Task]], Assignment]"
"""An assignor's decision over some of the members and some of the tasks; what it returns can be used."""

MOST_ROUNDS: Final = 4
"""How often an assignor is asked in one pass at most; each time it takes as long as without limits."""
MOST_PASSES: Final = 3


def within_limits(ask: Ask, members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
    """What `ask` deals, with no member over its limit; as many of the tasks that it deals as can be placed.

    Where tasks had to make way for others, it is all done again as though that were carried out: so the next
    rebalance, which finds it like this, moves nothing.

    Args:
        ask: asked once, with everything, unless it deals a member too much.
        members: all who take part.
        tasks: all that are to be dealt.
    """
    members = sorted(members, key=attrgetter("member_id"))
    for _ in range(MOST_PASSES):
        dealt = ask(members, tasks)
        if not any(_is_over(member, dealt) for member in members):
            return dealt
        seating = _seated(ask, members, tasks, dealt)
        if not seating.moved:
            break
        members = [replace(each, owned=frozenset(seating.names(at))) for at, each in enumerate(members)]
    return {member.member_id: seating.names(at) for at, member in enumerate(members)}


def _seated(ask: Ask, members: Sequence[Member], tasks: Sequence[Task], dealt: Assignment) -> Seating:
    """All that is dealt, as far as there is room."""
    eligible = Eligibility(members)
    able = {task.name: eligible.of(task) for task in tasks}
    wanted = {name for names in dealt.values() for name in names}
    given = _deal_again(ask, members, [task for task in tasks if task.name in wanted], able, dealt)
    seating = Seating(members, able, {at: given.get(each.member_id, ()) for at, each in enumerate(members)})
    seating.seat(wanted.difference(*given.values()))
    return seating


def first_of(member: Member, names: Iterable[str]) -> list[str]:
    """As many of `names` as `member` may have, those that it owns first."""
    return sorted(names, key=lambda name: (name not in member.owned, name))[: member.max_tasks]


def _deal_again(
    ask: Ask,
    members: Sequence[Member],
    tasks: Sequence[Task],
    able: Mapping[str, Members],
    dealt: Assignment,
) -> Assignment:
    """Ask again about what is too much, round after round; nobody is over the limit in what is returned."""
    kept: Assignment = {}
    free = dict(enumerate(members))
    for _ in range(MOST_ROUNDS - 1):
        for at in [at for at, member in free.items() if _is_over(member, dealt)]:
            full = free.pop(at)
            kept[full.member_id] = first_of(full, dealt[full.member_id])
        settled = {name for names in kept.values() for name in names}
        rest = [t for t in tasks if t.name not in settled and any(at in free for at in able[t.name])]
        dealt = ask(tuple(free.values()), rest) if free and rest else {}
        if not any(_is_over(member, dealt) for member in free.values()):
            break
    last = {each.member_id: first_of(each, dealt.get(each.member_id, ())) for each in free.values()}
    return kept | last


def _is_over(member: Member, dealt: Mapping[str, Sequence[str]]) -> bool:
    return member.max_tasks is not None and len(dealt.get(member.member_id, ())) > member.max_tasks
