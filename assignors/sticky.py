"""Moves as little as it can: balanced within one, with the fewest possible moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.balancing import balance
from assignors.base import Assignment, Assignor, Member, Task
from assignors.dealing import deal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class StickyAssignor(Assignor):
    """Levels the number of tasks and leaves every task it can where it is.

    Every task counts the same. What is promised exactly, pins and labels included, and why it holds, is told
    in `assignors.balancing`.
    """

    name = "sticky"

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Keep, level, and give out what is left."""
        return deal(members, tasks, current, balance)
