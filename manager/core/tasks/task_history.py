"""What became of a group's tasks since the group was taken up: each one's story, and all their moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core.history import Memory, Story
from protocol.messages.history import LifeLine, Move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.rows import OwnershipRow

LINES_KEPT: Final = 50
"""Of each task."""
MOVES_KEPT: Final = 4096
"""Of all tasks of a group together."""
CAUSE_LENGTH: Final = 2000
"""In characters; the present cause is in the task's status in full."""


class Chronicle:
    """In memory only. `since_ms` is when the group was taken up from storage, None if it never was."""

    __slots__ = ("_memory", "_stories", "moves", "since_ms")

    def __init__(self, memory: Memory | None = None) -> None:
        self.since_ms: int | None = None
        self._memory = memory or Memory()
        self.moves: Story[Move] = Story(self._memory, MOVES_KEPT)
        self._stories: dict[str, Story[LifeLine]] = {}

    def note(
        self, at_ms: int, before: OwnershipRow | None, row: OwnershipRow, *, is_told: bool = True
    ) -> None:
        """`row` takes the place of `before`, at `at_ms` (since 1970).

        `is_told` says whether it belongs to a task's story: what is left of a deleted one has none.
        """
        left = before.owner if before is not None else None
        if left != row.owner:
            self.moves.add(Move(at_ms=at_ms, task=row.task, left=left, joined=row.owner))
        if not is_told:
            return
        story = self._stories.get(row.task)
        if story is None:
            story = self._stories[row.task] = Story(self._memory, LINES_KEPT)
        if not story or before is None or _told(before) != _told(row):
            line = _line(at_ms, row)
            story.add(line, line.cause)

    def story_of(self, task: str) -> Iterator[LifeLine]:
        """What became of one task, oldest first."""
        return iter(self._stories.get(task, ()))

    def forget(self, task: str) -> None:
        """There is no such task any more; that it has moved about stays true."""
        if (story := self._stories.pop(task, None)) is not None:
            story.clear()

    def forget_all(self) -> None:
        """The group is not in memory any more."""
        self.moves.clear()
        for task in tuple(self._stories):
            self.forget(task)


def _told(row: OwnershipRow) -> tuple[object, ...]:
    return (row.state, row.owner, row.token, row.cause)


def _line(at_ms: int, row: OwnershipRow) -> LifeLine:
    return LifeLine(
        at_ms=at_ms,
        generation_id=row.generation_id,
        state=row.state.value,
        owner=row.owner,
        token=row.token,
        cause=row.cause[:CAUSE_LENGTH] if row.cause is not None else None,
    )
