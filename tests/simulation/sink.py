"""A fenced sink in a few lines: the present token writes, an older one is refused (DESIGN.md §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.invariants import Watch


class Sink:
    """Where the tasks of one group write; it outlives managers and workers."""

    def __init__(self, group: str, watch: Watch) -> None:
        self._group = group
        self._watch = watch
        self._fences: dict[str, int] = {}
        self.refused = 0

    def write(self, task: str, token: int, who: str) -> bool:
        """One batch; false when a newer owner has raised the fence."""
        if token < self._fences.get(task, 0):
            self.refused += 1
            return False
        self._watch.check_writer(self._group, task, token, who)
        self._fences[task] = token
        return True
