"""A fenced sink in a few lines: the present token writes, an older one is refused (architecture §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from protocol.messages.tasks import TaskHome
    from tests.simulation.invariants import Watch
    from tests.simulation.runs import Run


class Query(NamedTuple):
    """What writes: a task of a group under a token. The sink knows it by its `home`."""

    group: str
    task: str
    token: int
    home: TaskHome


class Writer(Protocol):
    """A worker, as the sink sees it."""

    name: str

    def may_run(self, home: TaskHome) -> bool:
        """Whether it runs a task without a fence, or may go on with it any moment."""
        ...


class Sink:
    """Where the tasks of all groups write; it outlives managers and workers.

    `writers` are all workers; without a fence, nothing but their leases keeps them apart.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._fences: dict[TaskHome, int] = {}
        self.writers: list[Writer] = []
        self.refused = 0
        self.unfenced = 0

    def settle(self, query: Query) -> None:
        """A new owner raises the fence, before it does anything else."""
        self._raise(query.home, max(query.token, self._fences.get(query.home, 0)))

    def _raise(self, home: TaskHome, token: int) -> None:
        self._fences[home] = token
        self._watch.raised(home, token)

    def write(self, query: Query, who: str) -> bool:
        """One batch; false when a newer owner has raised the fence."""
        if query.token < self._fences.get(query.home, 0):
            self.refused += 1
            return False
        self._watch.check_writer(query, who)
        self._raise(query.home, query.token)
        return True

    def complete(self, query: Query, run: Run) -> None:
        """A bounded query has written all there was."""
        self._watch.note_completed(query.home, run)

    def write_unfenced(self, query: Query, who: Writer) -> None:
        """One batch of a task without a fence, if `who` still believes in its lease."""
        if who.may_run(query.home):
            self.unfenced += 1
            self._watch.check_alone(query, [w.name for w in self.writers if w.may_run(query.home)])
