"""Levels work against capacity: what tasks weigh, or were measured to, and what workers can bear."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from assignors.base import Assignment, Assignor, Member, Task
from assignors.eligibility import Eligibility
from assignors.holders import holders
from assignors.offers import Loads
from assignors.relief import Kin, Relief
from assignors.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WeightedAssignor(Assignor):
    """Gives each member work in proportion to its capacity, and moves a task only if that pays.

    What work is, is told in `assignors.sizes`; what is promised, and why it holds, in `assignors.relief`.
    """

    name = "weighted"
    margin: ClassVar[float] = 0.2
    """A move pays if it gets a task this much lower, as a share of how high its member stands.

    So sizes may be 11 % off, upwards or downwards, and nothing moves: `margin / (2 - margin)`. A subclass may
    have another margin, from 0 to below 1.
    """

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Keep, place what nobody has, and relieve whoever is due."""
        ordered = sorted(members, key=attrgetter("member_id"))
        loads = Loads([member.capacity for member in ordered])
        kins = _kins(ordered, tasks, holders(ordered, current), loads)
        relief = Relief(kins, loads, self.margin)
        relief.place()
        relief.relieve()
        return {member.member_id: _names(at, kins) for at, member in enumerate(ordered)}


def _kins(
    members: Sequence[Member], tasks: Sequence[Task], held_by: Mapping[str, str], loads: Loads
) -> list[Kin]:
    """The tasks by who may run them; at home only where they may stay."""
    index = {member.member_id: at for at, member in enumerate(members)}
    size = sizes(tasks)
    kins = []
    for eligible, group in Eligibility(members).groups(tasks):
        may_run = set(eligible)
        held = {task.name: index[held_by[task.name]] for task in group if task.name in held_by}
        homes = {name: home for name, home in held.items() if home in may_run}
        kins.append(Kin(eligible, ((size[task.name], task.name) for task in group), homes, loads))
    return kins


def _names(member: int, kins: Sequence[Kin]) -> list[str]:
    """All that `member` is given, by name."""
    return sorted(
        name for kin in kins for kept in (kin.at_home, kin.loose) for _, name in kept.get(member, ())
    )
