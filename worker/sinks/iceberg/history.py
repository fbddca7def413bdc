"""A table's branches, tags and snapshots as data, and where in them a task's fence is; no I/O.

The newest mark among a head's ancestors is the fence. Snapshots expire, though: where the chain of parents
breaks off before a mark, the task's tags tell, which are put on published snapshots only and are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.sinks.errors import SinkError
from worker.sinks.iceberg.marks import order, read_mark, read_ref_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from worker.sinks.fence import FenceRow, Owner


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or a tag."""

    snapshot: int
    is_tag: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One of a table's; `mark` is the task's in it, and `added` its own count of new rows."""

    parent: int | None
    mark: str | None = None
    added: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """A fence row, and the snapshot whose mark it is."""

    row: FenceRow
    at: int


class StaleError(Exception):
    """Branches and snapshots were read one after the other, and do not go together: look again."""


@dataclass(frozen=True, slots=True)
class History:
    """What one look at a table has shown; `digest` is that of the task's own branches and tags."""

    owner: Owner
    digest: str
    refs: Mapping[str, Ref]
    snapshots: Mapping[int, Snapshot]

    def fence(self, head: int) -> Stored | None:
        """The task's fence as of the snapshot `head`; None if the table never saw the task.

        Raises:
            StaleError: a snapshot is gone that the look had seen before.
            SinkError: what is left does not say which batch is the last one.
        """
        at: int | None = head
        if head not in self.snapshots:
            raise StaleError
        while at is not None and at in self.snapshots:
            if (found := self._marked(at)) is not None:
                return found
            at = self.snapshots[at].parent
        return None if at is None else self._remembered()

    def _remembered(self) -> Stored | None:
        """By the tags; a branch that knows more was published or was not, and nobody can tell which."""
        tags = [stored for _, stored in self._own(is_tag=True)]
        newest = max(tags, key=lambda stored: order(stored.row), default=None)
        for name, stored in self._own(is_tag=False):
            if newest is None or order(stored.row) > order(newest.row):
                raise SinkError(_unsure(self.owner, name, stored))
        return newest

    def _own(self, *, is_tag: bool) -> Iterator[tuple[str, Stored]]:
        for name, ref in self.refs.items():
            if ref.is_tag is is_tag and read_ref_name(name, self.digest) is not None:
                if ref.snapshot not in self.snapshots:
                    raise StaleError
                if (found := self._marked(ref.snapshot)) is not None:
                    yield name, found

    def _marked(self, at: int) -> Stored | None:
        snapshot = self.snapshots[at]
        if snapshot.mark is None:
            return None
        return Stored(read_mark(self.owner, snapshot.mark, snapshot.added), at)


def _unsure(owner: Owner, name: str, stored: Stored) -> str:
    last = stored.row.last
    what = "its claim" if last is None else f"batch {last.batch_id}"
    return (
        f"{owner}: snapshots of the table have expired that would say whether {what} was published as"
        f" snapshot {stored.at}: if its rows are in the table, run CREATE TAG {name}f AS OF VERSION"
        f" {stored.at}; if not, drop the branch {name}; then restart the task"
    )
