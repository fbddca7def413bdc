"""What an assignor is: the interface that the built-in ones and plug-ins keep (architecture §4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Assignment: TypeAlias = dict[str, list[str]]
"""Member ids to the names of the tasks each is given."""

Kind: TypeAlias = Literal["eager", "cooperative"]


@dataclass(frozen=True, slots=True)
class Member:
    """A worker, as the leader knows it from its join metadata (protocol §5).

    `owned` names the tasks it says it runs at this moment. `capacity` is relative to that of the others.
    """

    member_id: str
    instance_id: str | None = None
    capacity: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """A task to be assigned.

    `worker` and `labels` say which members may run it (`assignors.eligibility` has the rules).
    `weight` is what its definition declares, `load` what was measured, None if nothing was yet.
    """

    name: str
    weight: float = 1.0
    worker: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    load: float | None = None


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
