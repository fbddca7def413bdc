"""How fast tasks get through their batches, by what the manager tells of them. Rules without I/O."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from protocol.task_metrics import figure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.tasks import TaskStatus


class Heard(NamedTuple):
    """That a batch was finished: when that was heard, in seconds, and how long Spark says it took."""

    at: float
    batch: tuple[int, int]
    took_ms: float


class Pace(NamedTuple):
    """The batches of several tasks in some time; `pause_s` is the longest between two of one, in seconds."""

    batches: int
    median_ms: float
    worst_ms: float
    pause_s: float

    def __str__(self) -> str:
        return (
            f"{self.batches:>4} batches, median {self.median_ms:>6,.0f} ms, worst {self.worst_ms:>7,.0f} ms,"
            f" longest pause {self.pause_s:>5.1f} s"
        )


class Paces:
    """What was heard of each of `tasks`."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._heard: dict[str, list[Heard]] = {task: [] for task in tasks}

    def look(self, at: float, told: Iterable[TaskStatus]) -> None:
        """Take in what the manager says at a moment; who has finished nothing since is passed over.

        Of batches that end between two reports of a worker, it says only the last.
        """
        for task in told:
            if task.task not in self._heard or task.batch_id is None:
                continue
            heard, batch = self._heard[task.task], (task.token, task.batch_id)
            if not heard or heard[-1].batch != batch:
                heard.append(Heard(at, batch, figure(task.metrics, "batch_ms") or 0.0))

    def fewest(self) -> int:
        """Batches heard of the task of which fewest were."""
        return min(map(len, self._heard.values()))

    def between(self, begin: float, end: float) -> Pace:
        """Of all tasks, from one moment to the other; a pause may begin before and end after nothing."""
        took: list[float] = []
        pauses: defaultdict[str, float] = defaultdict(float)
        for task, heard in self._heard.items():
            within = [each for each in heard if begin <= each.at < end]
            took += [each.took_ms for each in within]
            moments = [begin, *(each.at for each in within), end]
            pauses[task] = max(later - earlier for earlier, later in pairwise(moments))
        worst = max(took, default=0.0)
        return Pace(len(took), median(took or [0.0]), worst, max(pauses.values()))
