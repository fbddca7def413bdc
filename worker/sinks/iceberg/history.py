"""What one look at a table has shown of a task, and which of it is the fence; no I/O.

The newest mark among a head's ancestors is the fence. Snapshots expire, though: where the chain of parents
breaks off before a mark, the task's tag tells, which each of its commits moves, and which is kept. A branch
that somebody rolls back does not take its token with it: who has lost the task does not get it again by that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from worker.sinks.fence import FenceRow
from worker.sinks.iceberg.marks import read_mark

if TYPE_CHECKING:
    from worker.sinks.fence import Owner


class Marked(NamedTuple):
    """A mark of the task's, and its snapshot's own count of new rows."""

    mark: str
    added: int


class Seen(NamedTuple):
    """A branch of the table.

    Args:
        head: its newest snapshot; None if it has none.
        has_branch: whether there is the branch.
        found: the newest mark among the head's ancestors.
        is_whole: whether these were all there, down to that mark or the first snapshot.
        tagged: the mark at the task's tag.
    """

    head: int | None
    has_branch: bool
    found: Marked | None
    is_whole: bool
    tagged: Marked | None

    def fence(self, owner: Owner) -> FenceRow | None:
        """The task's fence; None if the table never saw the task.

        Raises:
            SinkError: the mark cannot be read.
        """
        tagged = _row_of(owner, self.tagged)
        row = _row_of(owner, self.found)
        if row is None and not self.is_whole:
            return tagged
        if tagged is None or tagged.token <= (0 if row is None else row.token):
            return row
        return replace(row or FenceRow(0), token=tagged.token)


def _row_of(owner: Owner, found: Marked | None) -> FenceRow | None:
    return None if found is None else read_mark(owner, found.mark, found.added)
