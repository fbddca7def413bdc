"""The steps by which a claim or a batch gets into a table; what each asks of the table, and no I/O.

A step is: look at the head and the fence in its past, and write right after that head, which fails if it is
not the head any more when the snapshot is committed. Then look again: that it is there is seen, not believed.

Each generator yields what is to be done with the table and is sent the answer, or thrown whatever it has
raised. What becomes of every order in which two owners' steps can be done, a test enumerates
(tests/unit/worker/sinks/iceberg, docs/exactly-once.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from definition.sinks.iceberg import MAIN
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, admits, raised
from worker.sinks.iceberg.marks import write_mark

if TYPE_CHECKING:
    from collections.abc import Generator

    from worker.sinks.fence import Mark, Owner
    from worker.sinks.iceberg.history import Seen

ATTEMPTS: Final = 8
"""At one claim or batch, each made vain by somebody else's commit."""


class TableError(SinkError):
    """The table, or its catalog, has not done what it was asked to, or has not answered."""


@dataclass(frozen=True, slots=True)
class Look:
    """Answered with the table as it is now (`Seen`)."""


@dataclass(frozen=True, slots=True)
class Write:
    """Commit the batch's rows, or none at all, as one snapshot with this mark.

    It comes about only as the one that directly follows `head`, if that is still the branch's head then.
    """

    head: int | None
    mark: str
    is_batch: bool


Ask: TypeAlias = Look | Write
Result = TypeVar("Result")


class Outcome(NamedTuple):
    """How a batch went.

    Args:
        row: the fence row now.
        rows: how many have come with the batch.
        is_duplicate: whether it had been written before.
    """

    row: FenceRow
    rows: int
    is_duplicate: bool


def _outcome(before: FenceRow | None, now: FenceRow) -> Outcome:
    """`before` is the row before the attempt that came about, None if none was needed."""
    return Outcome(now, 0 if before is None else now.rows - before.rows, is_duplicate=before is None)


class Publisher:
    """One process's claims and batches of one owner, one after the other."""

    def __init__(self, owner: Owner, target: str) -> None:
        """`target` is the branch that is written to."""
        self._owner = owner
        self._target = target
        self._seen: Seen | None = None

    def newest(self) -> Generator[Ask, Any, FenceRow | None]:
        """The fence row; None if the table never saw the task."""
        seen: Seen = yield Look()
        return seen.fence(self._owner)

    def claim(self) -> Generator[Ask, Any, FenceRow]:
        """Raise the fence to the owner's token, by an empty snapshot that carries the last batch's mark on.

        Raises:
            FencedError: a newer owner was here.
            SinkError: it cannot be done.
        """
        seen = yield from self._look()
        for _ in range(ATTEMPTS):
            if not seen.has_branch and self._target != MAIN:
                raise TableError(self._branch_is_gone())
            found = seen.fence(self._owner)
            new = FenceRow(self._owner.token, self._owner.resets)
            row = raised(new if found is None else found, self._owner)
            if found == row:
                return row
            seen = yield from self._write(seen, write_mark(self._owner, row, 0), is_batch=False)
        raise self._crowded("claimed")

    def put(self, mark: Mark, added: int | None) -> Generator[Ask, Any, Outcome]:
        """Put a batch into the table, unless it is there.

        What was seen last is believed of the head until the write, which fails if it is wrong.

        Args:
            mark: which batch it is.
            added: its rows; None if the snapshot's own count says it.

        Raises:
            FencedError: a newer owner has raised the fence.
            OutOfOrderError: the batch does not follow the last one.
            SinkError: it cannot be done, or nobody knows whether it was.
        """
        before: FenceRow | None = None
        seen = self._seen
        if seen is None or not self._is_next(seen, mark):
            seen = yield from self._look()
        for _ in range(ATTEMPTS):
            if not seen.has_branch:
                raise TableError(self._branch_is_gone())
            row = seen.fence(self._owner)
            if not admits(row, self._owner, mark) or row is None:
                return _outcome(before, row or FenceRow(0))
            before = row
            new = FenceRow(self._owner.token, self._owner.resets, mark, row.rows)
            seen = yield from self._write(seen, write_mark(self._owner, new, added), is_batch=True)
        raise self._crowded("written to")

    def _is_next(self, seen: Seen, mark: Mark) -> bool:
        """Whether the batch follows what was seen; whatever else it is, is judged by a fresh look."""
        row = seen.fence(self._owner)
        if row is None or row.token != self._owner.token or row.resets != self._owner.resets:
            return False
        last = row.last
        if last is None:
            return mark.batch_id == 0
        return (mark.checkpoint, mark.batch_id) == (last.checkpoint, last.batch_id + 1)

    def _write(self, seen: Seen, mark: str, *, is_batch: bool) -> Generator[Ask, Any, Seen]:
        """The table after a write that came about, or that others' commits have made vain.

        A write that fails has been too late if the head is not the same any more, or it came about and the
        answer was lost; the fence tells. If the head is the same, it has failed for a reason of its own.
        """
        self._seen = None
        try:
            yield Write(seen.head, mark, is_batch)
        except Exception:
            now = yield from self._look()
            if now.head == seen.head:
                raise
            return now
        return (yield from self._look())

    def _look(self) -> Generator[Ask, Any, Seen]:
        self._seen = None
        seen: Seen = yield Look()
        self._seen = seen
        return seen

    def _branch_is_gone(self) -> str:
        if self._target == MAIN:
            return f"{self._owner}: the table was replaced by an empty one, or lost its branch {MAIN}"
        remedy = "create it, or leave sink.options.branch out"
        return f"{self._owner}: the table has no branch {self._target}: {remedy}"

    def _crowded(self, done: str) -> SinkError:
        return SinkError(
            f"{self._owner}: the table could not be {done}: each of {ATTEMPTS} attempts met a commit of"
            " somebody else's; one task should write to a table at a time"
        )
