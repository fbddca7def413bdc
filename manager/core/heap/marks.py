"""How far the tasks of a JVM had come, and what their states took, from time to time.

A group may have a hundred thousand tasks, so figures of all tasks of a worker are kept side by side.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from manager.core.heap.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MARKS_KEPT: Final = 24
UNKNOWN: Final = -1


class Doing(NamedTuple):
    """What a task tells: its last finished batch, and what its state takes, in bytes; None if unknown."""

    batch_id: int | None = None
    state: int | None = None


IDLE: Final = Doing()


class Mark(NamedTuple):
    """The figures at one moment, each in the order of the tasks."""

    at_ms: int
    batches: array[int]
    state: array[int]


class Marks:
    """Of the tasks that one JVM runs, over `span_ms`."""

    __slots__ = ("_marks", "_place")

    def __init__(self, tasks: Iterable[str], span_ms: int) -> None:
        """`tasks` stay the same."""
        self._place = {task: place for place, task in enumerate(sorted(tasks))}
        self._marks: Moments[Mark] = Moments(MARKS_KEPT, span_ms, _earlier)

    def add(self, at_ms: int, doing: Mapping[str, Doing]) -> None:
        """What is told now; of tasks that are not there, nothing is known."""
        told = [doing.get(task, IDLE) for task in self._place]
        batches = array("q", (_told(each.batch_id) for each in told))
        self._marks.add(Mark(at_ms, batches, array("q", (_told(each.state) for each in told))))

    def within(self, begin_ms: int, end_ms: int) -> Done:
        """What the tasks have certainly finished between two moments."""
        return Done(self._place, [each for each in self._marks if begin_ms <= each.at_ms <= end_ms])

    def around(self, begin_ms: int, end_ms: int) -> Done:
        """What they have finished between two moments, if anything too much."""
        marks = [*self._marks]
        first = max((at for at, each in enumerate(marks) if each.at_ms <= begin_ms), default=0)
        last = next((at for at, each in enumerate(marks) if each.at_ms >= end_ms), len(marks) - 1)
        return Done(self._place, marks[first : last + 1])

    def state_growth(self, task: str, begin_ms: int) -> int:
        """How much the state of a task grew from then on, in bytes."""
        place, marks = self._place[task], self._marks.since(begin_ms)
        if not marks or marks[0].state[place] == UNKNOWN:
            return 0
        return max(marks[-1].state[place], 0) - marks[0].state[place]


class Done:
    """What tasks have finished, by the marks of a while."""

    __slots__ = ("_marks", "_place")

    def __init__(self, place: Mapping[str, int], marks: Sequence[Mark]) -> None:
        self._place = place
        self._marks = marks

    def batches(self, task: str) -> int:
        """How many batches, since the task was known; 0 if it never was, or was reset."""
        known = self._since_known(task)
        return max(known[-1] - known[0], 0) if known else 0

    def batches_of_all(self, task: str) -> int:
        """The same, as if it had done as many before it was known."""
        known, marks = self._since_known(task), self._marks
        if len(known) <= 1:
            return 0
        seen_ms = marks[-1].at_ms - marks[-len(known)].at_ms
        return self.batches(task) * (marks[-1].at_ms - marks[0].at_ms) // max(seen_ms, 1)

    def _since_known(self, task: str) -> list[int]:
        """The batch ids from the first mark on that has one."""
        place, marks = self._place[task], self._marks
        for at, each in enumerate(marks):
            if each.batches[place] != UNKNOWN:
                return [each.batches[place] for each in marks[at:]]
        return []


def _told(figure: int | None) -> int:
    return UNKNOWN if figure is None else figure


def _earlier(first: Mark, _: Mark) -> Mark:
    return first
