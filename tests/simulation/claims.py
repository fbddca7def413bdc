"""The claims of a worker of a history that are under way, and what may have been granted unheard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet


class Claims:
    """As `worker.tasks.exchange.claims` goes by them; `in_doubt` has the generation of each in doubt."""

    def __init__(self) -> None:
        self.in_doubt: dict[str, int] = {}
        self._under_way: dict[int, frozenset[str]] = {}
        self._begun = 0

    @property
    def tasks(self) -> frozenset[str]:
        """What may be granted any moment."""
        return frozenset[str]().union(*self._under_way.values())

    def begin(self, tasks: frozenset[str]) -> int:
        """One is sent; its number."""
        self._begun += 1
        self._under_way[self._begun] = tasks
        return self._begun

    def end(self, number: int) -> bool:
        """It is answered; whether anybody still waits for that."""
        return self._under_way.pop(number, None) is not None

    def abandon(self) -> None:
        """Nobody waits for answers any more, and nothing is in doubt."""
        self._under_way, self.in_doubt = {}, {}

    def doubt(self, tasks: AbstractSet[str], generation: int) -> None:
        """They may have been granted, and the answer was lost."""
        self.in_doubt |= dict.fromkeys(tasks, generation)

    def settle(self, tasks: AbstractSet[str], granted: Iterable[str], generation: int) -> None:
        """An answer of this generation tells of these tasks which of them are granted."""
        told = frozenset(granted)
        for task in tasks:
            if task in told or self.in_doubt.get(task, generation) < generation:
                self.in_doubt.pop(task, None)
