"""A herd with well-behaved tasks and a harmful one: looked at, fed, its workers kept running."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.client.admin_client import path_of
from protocol.errors import RefusedError
from protocol.messages.events import EventListResponse, EventType
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.harms.catalogue import CODE, NAME, Place
from tests.acceptance.harms.fate import Fate
from tests.acceptance.harms.feed import Feed
from tests.acceptance.harms.keeper import Keeper
from tests.acceptance.harms.neighbours import neighbours
from tests.acceptance.harms.pace import Paces
from tests.acceptance.processes import Herd, Manager
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from protocol.messages.tasks import TaskView
    from tests.acceptance.harms.catalogue import Harm
    from tests.soak.places import Fault

WORKERS: Final = ("anna", "berta")
FEED_S: Final = 1.0
PATIENCE_S: Final = 600.0
"""For what has to come about, harm or none."""
WARM: Final = 5
"""Batches of each neighbour before any of them counts: the first ones are slow."""
REPOSITORY: Final = Path(__file__).parents[3]


class Stage:
    """Everything there is, and what was seen of it."""

    def __init__(
        self,
        folder: Path,
        postgres: str,
        harm: Harm,
        *,
        isolate: bool,
        good: int = 4,
        workers: Sequence[str] = WORKERS,
    ) -> None:
        """`good` is the number of neighbours."""
        self.feed = Feed(folder / "in")
        self.neighbours = list(neighbours(good, folder, postgres))
        self.paces = Paces(each.name for each in self.neighbours)
        self.fate = Fate()
        self.tasks: dict[str, TaskView] = {}
        self._harm = harm
        self._place = Place(self.feed, folder, isolate)
        self._workers = workers
        self._is_fed = True
        self._feed_at = 0.0
        self._herd = Herd(folder, Manager(folder, "--initial-rebalance-delay-ms", "1000"))
        self._view = GroupView(self._herd)
        flags = ("--allow-entrypoint", CODE, *harm.flags)
        self.keeper = Keeper(self._herd, folder, flags, isolate=isolate)

    def open(self) -> None:
        """Bring up workers and neighbours; these are at their pace when this returns."""
        for name in self._workers:
            self.keeper.start(name)
        self._require(self._is_full, "all are members")
        self.feed.add()
        for each in self.neighbours:
            self._view.create(each.name, each.definition(self.feed))
        self._require(lambda: self.is_well() and self.paces.fewest() >= WARM, "the neighbours are warm")

    def close(self) -> None:
        """Stop all of it."""
        self._herd.stop()
        for each in self.neighbours:
            each.database.close()

    def harm(self) -> None:
        """Create the harmful task."""
        self._view.create(NAME, self._harm.definition(self._place))

    def until(self, done: Callable[[], bool], within_s: float) -> bool:
        """Look on until it is done, but no longer than that; returns whether it is."""
        deadline = time.monotonic() + within_s
        is_done = False

        def look() -> bool:
            nonlocal is_done
            self._look()
            is_done = done()
            return is_done or time.monotonic() >= deadline

        what = f"somebody has looked for {within_s:.0f} s"
        eventually(look, what, alive=[self._herd.manager], within_s=within_s + PATIENCE_S)
        return is_done

    def look_on(self, seconds: float) -> None:
        """As long as that."""
        self.until(lambda: False, seconds)

    def restart_owner(self) -> None:
        """Restart the worker that has the harmful task, or was the last to die of it, in order."""
        owner = self.tasks[NAME].owner
        name = next((name for name, member in self._view.workers().items() if member == owner), None)
        name = name or (self.keeper.deaths[-1].worker if self.keeper.deaths else self._workers[0])
        self.keeper.restart(name)

    def is_well(self) -> bool:
        """Whether all workers are there, and each neighbour runs where it is assigned."""
        return self._is_full() and all(map(self._is_running, self.neighbours_told()))

    def neighbours_told(self) -> list[TaskView]:
        """What the manager has said of them last."""
        return [self.tasks[each.name] for each in self.neighbours if each.name in self.tasks]

    def is_quarantined(self) -> bool:
        """Whether the manager has told so of the harmful task."""
        path = f"{path_of('events')}?group={GROUP}&limit=1000"
        events = self._herd.manager.client().get(path, EventListResponse).events
        return any(each.type == EventType.TASK_QUARANTINED and each.task == NAME for each in events)

    def have_all_arrive(self, within_s: float) -> dict[str, Fault]:
        """Feed no more, and give the neighbours time to write what there is; returns what is wrong then."""
        self._is_fed = False
        self.until(lambda: not any(map(any, self.faults().values())), within_s)
        return self.faults()

    def faults(self) -> dict[str, Fault]:
        """By neighbour."""
        return {each.name: each.fault(self.feed.rows) for each in self.neighbours}

    def _require(self, done: Callable[[], bool], what: str) -> None:
        assert self.until(done, PATIENCE_S), what

    def _look(self) -> None:
        now = time.monotonic()
        if self._is_fed and now >= self._feed_at:
            self.feed.add()
            self._feed_at = now + FEED_S
        self.keeper.look(now)
        with suppress(RefusedError):  # no such group before the first join
            self.tasks = self._view.tasks()
        self.paces.look(now, self.tasks.values())
        self.fate.look(now, self.tasks.get(NAME))

    def _is_full(self) -> bool:
        with suppress(RefusedError):  # no such group before the first join
            return sorted(self._view.workers()) == sorted(self._workers)
        return False

    @staticmethod
    def _is_running(task: TaskView) -> bool:
        return (
            task.state == TaskState.RUNNING.value
            and task.batch_id is not None
            and task.owner == task.assigned_to
        )


@contextmanager
def code_in_reach() -> Iterator[None]:
    """Processes that are started meanwhile, those of Spark's too, find this repository's entry points."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before
