"""Herds whose heaps are told, on a clock that is moved by the test."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from manager.core.heap.marks import Doing
from manager.core.heap.stretches import Holder
from manager.core.heap.suspects import HeapSuspects, Suspicion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIB = 2**20
HEAP = 1024 * MIB
MINUTE = 60_000


def holders(names: Iterable[str]) -> frozenset[Holder]:
    """A task for each name."""
    return frozenset(Holder(name, 1) for name in names)


class Herd:
    """Workers that tell every ten seconds what a collection has left; a leak grows while it runs."""

    def __init__(self, leaks: Mapping[str, float], noise: float = 0.03) -> None:
        """`leaks` is in MiB a minute by task; `noise` a share of the heap."""
        self.suspects = HeapSuspects()
        self.at_ms = 1_700_000_000_000
        self.told: list[Suspicion] = []
        self.lazy: set[str] = set()
        self.idle: set[str] = set()
        self.by_batches = False
        self._batches: dict[str, int] = {}
        self._leaks = leaks
        self._noise = noise
        self._kept: dict[str, dict[str, float]] = {}
        self._chance = random.Random(1)

    def run(self, minutes: int, **workers: str) -> None:
        """The workers, each with its tasks by letter; what a task has kept goes with it."""
        for _ in range(minutes * 6):
            self.at_ms += 10_000
            for member_id, names in workers.items():
                kept = self._kept.setdefault(member_id, {})
                for name in set(kept) - set(names):
                    del kept[name]
                for name in set(names) - self.idle:
                    self._batches[name] = self._batches.get(name, 0) + 1
                for name in names:
                    is_still = self.by_batches and name in self.idle
                    kept[name] = kept.get(name, 20.0) + (0 if is_still else self._leaks.get(name, 0.0) / 6)
                low = sum(kept.values()) + self._chance.uniform(0, self._noise * 1024)
                judged = self.suspects.look(
                    member_id,
                    holders(names),
                    low=int(low * MIB) if member_id not in self.lazy else None,
                    ceiling=int(low * MIB) + 50 * MIB,
                    heap_max=HEAP,
                    doing={name: Doing(self._batches.get(name)) for name in names},
                    at_ms=self.at_ms,
                )
                self.told += judged.news if judged is not None else []

    @property
    def suspected(self) -> dict[str, str]:
        """By task, why."""
        return {task: each.ground for task, each in self.suspects.suspicions.items()}
