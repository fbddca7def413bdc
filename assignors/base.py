"""What an assignor is: the interface that the built-in ones and plug-ins keep (architecture §4).

`in_order` and `holders` answer what nearly all of them ask first: in which order, and who has what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from protocol.connectors import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from protocol.connectors import Formats, Needs

Assignment: TypeAlias = dict[str, list[str]]
"""Member ids to the names of the tasks each is given."""

Kind: TypeAlias = Literal["eager", "cooperative"]


@dataclass(frozen=True, slots=True)
class Member:
    """A worker, as the leader knows it from its join metadata (protocol §5).

    `owned` names the tasks it says it runs at this moment. `capacity` is relative to that of the others.
    `spark` is the version of its Spark, `formats` what that can read and write; None if it does not say.
    `max_tasks` is how many tasks it is given at most, None for any number. The leader sees to that, whatever
    the assignor deals (`assignors.limits`).
    """

    member_id: str
    instance_id: str | None = None
    capacity: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    spark: str | None = None
    formats: Formats | None = None
    max_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task to be assigned.

    `worker`, `labels` and `needs` say which members may run it (`assignors.eligibility` has the rules).
    `weight` is what its definition declares, `load` what was measured, None if nothing was yet. `token` is
    the fencing token that its owner has, 0 without one: the higher it is, the later the task came there.
    `lag` is how many rows it is behind, None if that is not known. An `exclusive` one wants a member to
    itself: the leader sees to that, and no assignor is asked about it (`assignors.exclusive`).
    """

    name: str
    weight: float = 1.0
    worker: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    load: float | None = None
    needs: Needs = NOTHING
    exclusive: bool = False
    token: int = 0
    lag: int | None = None


class Assignor(ABC):
    """Decides who runs what. Stateless: the leader may change with every rebalance.

    `name` is what members vote for when they join, so all members of a group must know it. `kind` says how a
    rebalance goes: with `cooperative`, only the tasks that move are stopped; with `eager`, workers stop
    and release everything before they join, and `owned` is empty.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "cooperative"

    @abstractmethod
    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Give tasks to members.

        Pure: no I/O, no clock, no randomness, and nothing may hang on the order in which a set or a mapping
        iterates; the leader may call it in a thread and throw the result away.

        Args:
            members: everyone in the group, each id once, in any order; never empty.
            tasks: all that can run, each name once, in any order.
            current: the last assignment the leader knows of. It may name members and tasks that are gone, and
                it may disagree with what members say they own: that is what runs.

        Returns:
            An entry a member. A task that is left out runs nowhere, which is right only if no member is
            eligible for it. An unknown member, an unknown task or a task named twice makes the leader refuse
            the result (`assignors.checked`), as raising does.
        """


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by instance id, then the others by member id (Kafka's `MemberInfo`, KIP-345).

    So a static worker that was restarted has its old place, though its member id is a new one.
    """
    return sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )


def holders(members: Sequence[Member], current: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The member that has each task: the one that says it runs it, else the one it was last assigned to.

    If two say so, one of them is a zombie, and the last assignment decides, then the order of `members`.
    A task of which no present member is the holder is missing: to place it is no move.
    """
    planned = {name: member.member_id for member in members for name in current.get(member.member_id, ())}
    owners: dict[str, str] = {}
    for member in members:
        for name in member.owned:
            if name not in owners or planned.get(name) == member.member_id:
                owners[name] = member.member_id
    return planned | owners
