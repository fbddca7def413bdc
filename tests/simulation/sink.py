"""A fenced sink in a few lines: the present token writes, an older one is refused (architecture §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from manager.core.stored_rows import OwnershipRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.invariants import Watch
    from tests.simulation.runs import Run
    from tests.simulation.store import Rows


class Writer(Protocol):
    """A worker, as the sink sees it."""

    name: str

    def may_run(self, task: str) -> bool:
        """Whether it runs a task without a fence, or may go on with it any moment."""
        ...


class Sink:
    """Where the tasks of one group write; it outlives managers and workers.

    `writers` are the workers of the group; without a fence, nothing but their leases keeps them apart.
    """

    def __init__(self, group: str, watch: Watch, rows: Callable[[], Rows]) -> None:
        self._group = group
        self._watch = watch
        self._rows = rows
        self._fences: dict[str, int] = {}
        self.writers: list[Writer] = []
        self.refused = 0
        self.unfenced = 0

    def settle(self, task: str, token: int) -> None:
        """A new owner raises the fence, before it does anything else."""
        self._raise(task, max(token, self._fences.get(task, 0)))

    def _raise(self, task: str, token: int) -> None:
        self._fences[task] = token
        self._watch.raised(self._group, task, token)

    def write(self, task: str, token: int, who: str) -> bool:
        """One batch; false when a newer owner has raised the fence."""
        if token < self._fences.get(task, 0):
            self.refused += 1
            return False
        self._watch.check_writer(self._group, task, token, who)
        self._watch.check_at_rest(self._rows().get((OwnershipRow, (self._group, task))), who)
        self._raise(task, token)
        return True

    def complete(self, task: str, run: Run) -> None:
        """A bounded query has written all there was."""
        self._watch.note_completed(self._group, task, run)

    def write_unfenced(self, task: str, who: Writer) -> None:
        """One batch of a task without a fence, if `who` still believes in its lease."""
        if who.may_run(task):
            self.unfenced += 1
            self._watch.check_alone(self._group, task, [w.name for w in self.writers if w.may_run(task)])
