"""How a group's tasks fare in sum, kept true as they change: a hundred thousand are not counted anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PRECISION: Final = 1_000_000
"""Loads are added up as whole millionths: what was added is taken away again without a rest."""
FEW: Final = 16
"""Sorting one in so many of the names takes as long as looking through all of them, which are in order."""


class Standing(NamedTuple):
    """How a task counts: who owns it, its state, and the load that was told of it, None if none was."""

    owner: str | None
    state: str
    load: float | None


@dataclass(slots=True)
class OwnerTally:
    """The tasks of one owner by state; `measured` of them have a load, `millionths` of all together."""

    states: Counter[str] = field(default_factory=Counter)
    measured: int = 0
    millionths: int = 0

    @property
    def load(self) -> float | None:
        """Of all its tasks, None if nobody has told one."""
        return self.millionths / PRECISION if self.measured else None

    def change(self, standing: Standing, by: int) -> None:
        """One task more, or one fewer."""
        self.states[standing.state] += by
        if standing.load is not None:
            self.measured += by
            self.millionths += by * round(standing.load * PRECISION)


@dataclass(slots=True)
class TaskTally:
    """The names of the tasks in each state, and the counts of each owner; None owns what nobody does."""

    by_state: dict[str, set[str]] = field(default_factory=dict)
    by_owner: dict[str | None, OwnerTally] = field(default_factory=dict)

    def add(self, task: str, standing: Standing) -> None:
        """A task counts so from now on."""
        self.by_state.setdefault(standing.state, set()).add(task)
        self.by_owner.setdefault(standing.owner, OwnerTally()).change(standing, 1)

    def remove(self, task: str, standing: Standing) -> None:
        """A task, as it was added, counts no more."""
        names, owner = self.by_state[standing.state], self.by_owner[standing.owner]
        names.remove(task)
        owner.change(standing, -1)
        if not names:
            del self.by_state[standing.state]
        if not owner.states.total():
            del self.by_owner[standing.owner]

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state that occurs."""
        return {state: len(names) for state, names in self.by_state.items()}

    def is_few(self, state: str, tasks: int) -> bool:
        """Whether so few of all `tasks` are in a state that they are better put in order by themselves."""
        return len(self.in_state(state)) * FEW < tasks

    def in_state(self, state: str) -> frozenset[str] | set[str]:
        """The tasks in a state; of a word that is none there are none."""
        return self.by_state.get(state, frozenset())
