"""How many tasks each worker had when: the present, taken back move by move."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from protocol.messages.history import Move


@dataclass(frozen=True, slots=True)
class Lane:
    """A worker's tasks; `steps` are (since when, how many), the latest first, the last one since ever."""

    worker: str
    steps: tuple[tuple[float, int], ...]

    @property
    def now(self) -> int:
        """How many it has."""
        return self.steps[0][1]

    @property
    def most(self) -> int:
        """How many it had at most."""
        return max(count for _, count in self.steps)


def lanes(owned: Mapping[str, int], moves: Sequence[Move], begin_ms: float) -> list[Lane]:
    """A lane for each worker that has or had tasks since `begin_ms`, in the order of `owned`, then of names.

    Args:
        owned: how many tasks each worker has now; who has none may be among them.
        moves: oldest first.
        begin_ms: moves before it are of no interest.
    """
    counts = Counter(owned)
    steps: dict[str, list[tuple[float, int]]] = {worker: [] for worker in owned}
    for move in reversed(moves):
        if move.at_ms < begin_ms:
            break
        for worker, change in ((move.joined, 1), (move.left, -1)):
            if worker is not None:
                _take_back(steps.setdefault(worker, []), move.at_ms, counts[worker])
                counts[worker] -= change
    known = [*owned, *sorted(steps.keys() - owned.keys())]
    return [Lane(worker, (*steps[worker], (begin_ms, counts[worker]))) for worker in known]


def _take_back(steps: list[tuple[float, int]], at_ms: float, count: int) -> None:
    """Of what changes in one moment, only the outcome is seen."""
    if not steps or steps[-1][0] != at_ms:
        steps.append((at_ms, count))
