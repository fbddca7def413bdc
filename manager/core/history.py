"""What is remembered for people, in memory only: so many lines of each story, and so many bytes of all.

A herd that fails again and again adds a line with a trace each time. What that takes is counted over all
that one manager remembers, and the oldest lines are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import count
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = 64 * 2**20
LINE_BYTES: Final = 500
"""What a line takes beside its text: about as much as its numbers, its names and its places take."""

Line = TypeVar("Line")


class Memory:
    """All that is remembered of anything: `most` bytes at most."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.bytes = 0
        self._most = most
        self._numbers = count()
        self._lines: OrderedDict[int, tuple[Story[Any], int]] = OrderedDict()

    def keep(self, story: Story[Any], size: int) -> int:
        """Count a new line of `story`, forget older ones that there is no room for, and return its number."""
        number = next(self._numbers)
        self._lines[number] = (story, size)
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


class Story(Generic[Line]):
    """The latest lines about one thing, oldest first: `most` of them, or fewer where `memory` has no room."""

    __slots__ = ("_lines", "_memory", "_most")

    def __init__(self, memory: Memory, most: int) -> None:
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
