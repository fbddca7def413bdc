"""What is remembered for people, in memory only: so many lines of each history, so many bytes of all.

A task that fails again and again adds a line with a trace each time. What that takes is counted over all
that one manager remembers, and the oldest lines are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import count
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from protocol.messages.history import Move, TaskHistoryLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manager.core.stored_rows import OwnershipRow

MOST_BYTES: Final = 64 * 2**20
LINE_BYTES: Final = 500
"""What a line takes beside its text: about as much as its numbers, its names and its places take."""
TASK_LINES_KEPT: Final = 50
"""Of each task."""
MOVES_KEPT: Final = 4096
"""Of all tasks of a group together."""
CAUSE_LENGTH: Final = 2000
"""In characters; the present cause is in the task's status in full."""

Line = TypeVar("Line")


class HistoryMemory:
    """All that is remembered of anything: `most` bytes at most."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.bytes = 0
        self._most = most
        self._numbers = count()
        self._lines: OrderedDict[int, tuple[BoundedHistory[Any], int]] = OrderedDict()

    def keep(self, history: BoundedHistory[Any], size: int) -> int:
        """Count a new line of `history`, forget older ones without room, and return its number."""
        number = next(self._numbers)
        self._lines[number] = (history, size)
        self.bytes += size
        while self.bytes > self._most and len(self._lines) > 1:
            _, (oldest, size) = self._lines.popitem(last=False)
            self.bytes -= size
            oldest.lose_first()
        return number

    def forget(self, number: int) -> None:
        """The line of that number is gone."""
        _, size = self._lines.pop(number)
        self.bytes -= size


class BoundedHistory(Generic[Line]):
    """The latest lines about one thing, oldest first: `most` of them, or fewer where `memory` has no room."""

    __slots__ = ("_lines", "_memory", "_most")

    def __init__(self, memory: HistoryMemory, most: int) -> None:
        self._memory = memory
        self._most = most
        self._lines: deque[tuple[int, Line]] = deque()

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return (line for _, line in self._lines)

    def __reversed__(self) -> Iterator[Line]:
        return (line for _, line in reversed(self._lines))

    def add(self, line: Line, text: str | None = None) -> None:
        """Remember `line`, whose own text is `text`."""
        if len(self._lines) == self._most:
            self._memory.forget(self._lines.popleft()[0])
        size = LINE_BYTES + (getsizeof(text) if text else 0)
        self._lines.append((self._memory.keep(self, size), line))

    def lose_first(self) -> None:
        """The first line was forgotten."""
        self._lines.popleft()

    def clear(self) -> None:
        """There is nothing to tell any more."""
        while self._lines:
            self._memory.forget(self._lines.popleft()[0])


class TaskHistory:
    """What became of a group's tasks: each one's history, and all moves between owners.

    `since_ms` is when the group was taken up from storage, None if it never was.
    """

    __slots__ = ("_by_task", "_carried", "_memory", "moves", "since_ms")

    def __init__(self, memory: HistoryMemory | None = None) -> None:
        self.since_ms: int | None = None
        self._memory = memory or HistoryMemory()
        self.moves: BoundedHistory[Move] = BoundedHistory(self._memory, MOVES_KEPT)
        self._by_task: dict[str, BoundedHistory[TaskHistoryLine]] = {}
        self._carried: set[str] = set()

    def note(
        self, at_ms: int, before: OwnershipRow | None, row: OwnershipRow, *, is_told: bool = True
    ) -> None:
        """`row` takes the place of `before`, at `at_ms` (since 1970).

        `is_told` says whether it belongs to a task's history: what is left of a deleted one has none.
        """
        left = before.owner if before is not None else None
        if left != row.owner:
            self.moves.add(Move(at_ms=at_ms, task=row.task, left=left, joined=row.owner))
        if not is_told:
            return
        history = self._of(row.task)
        if not history or before is None or _told(before) != _told(row):
            line = _line(at_ms, row)
            history.add(line, line.cause)

    def _of(self, task: str) -> BoundedHistory[TaskHistoryLine]:
        history = self._by_task.get(task)
        if history is None:
            history = self._by_task[task] = BoundedHistory(self._memory, TASK_LINES_KEPT)
        return history

    def carry(self, task: str, lines: Iterable[TaskHistoryLine]) -> None:
        """`task` has come from another group, with these lines: its history begins with them."""
        self.forget(task)
        self._carried.add(task)
        history = self._of(task)
        for line in lines:
            history.add(line, line.cause)

    def has_carried(self, task: str) -> bool:
        """Whether the history of `task` begins in another group."""
        return task in self._carried

    def of_task(self, task: str) -> Iterator[TaskHistoryLine]:
        """What became of one task, oldest first."""
        return iter(self._by_task.get(task, ()))

    def newest_first(self, task: str) -> Iterator[TaskHistoryLine]:
        """What became of one task, the latest first."""
        history = self._by_task.get(task)
        return iter(()) if history is None else reversed(history)

    def forget(self, task: str) -> None:
        """There is no such task any more; that it has moved about stays true."""
        self._carried.discard(task)
        if (history := self._by_task.pop(task, None)) is not None:
            history.clear()

    def forget_all(self) -> None:
        """The group is not in memory any more."""
        self.moves.clear()
        for task in tuple(self._by_task):
            self.forget(task)


def _told(row: OwnershipRow) -> tuple[object, ...]:
    return (row.state, row.owner, row.token, row.cause)


def _line(at_ms: int, row: OwnershipRow) -> TaskHistoryLine:
    return TaskHistoryLine(
        at_ms=at_ms,
        generation_id=row.generation_id,
        state=row.state.value,
        owner=row.owner,
        token=row.token,
        cause=row.cause[:CAUSE_LENGTH] if row.cause is not None else None,
    )
