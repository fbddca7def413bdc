"""Assignors that a herd is tried with, named as `module:Class`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from assignors.base import Assignment, Assignor, Kind, Member, Task
from assignors.roundrobin import RoundRobinAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STOP_THE_WORLD = "tests.integration.herd.rules:StopTheWorld"
OUT_OF_ORDER = "tests.integration.herd.rules:OutOfOrder"
CHOOSY = "tests.integration.herd.rules:Choosy"


class StopTheWorld(RoundRobinAssignor):
    """Eager: it would be wrong if anything still ran when it decides, and writes down if it does."""

    name = "stop-the-world"
    kind: ClassVar[Kind] = "eager"
    still_owned: ClassVar[list[frozenset[str]]] = []

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Deal, whoever had what."""
        self.still_owned.extend(member.owned for member in members if member.owned)
        return super().assign(members, tasks, current)


class OutOfOrder(Assignor):
    """Always fails."""

    name = "out-of-order"

    def assign(self, *_: object) -> Assignment:
        """Fail."""
        raise LookupError("out of order")


class Choosy(RoundRobinAssignor):
    """Leaves out a task it does not like."""

    name = "choosy"

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Deal all but t4."""
        return super().assign(members, [task for task in tasks if task.name != "t4"], current)
