"""The steps by which a claim or a batch gets into a table; what each asks of the table, and no I/O.

One step is: read the head and the fence in its past, make a branch there, write to the branch, see that
what was written directly follows that head, move the head forward to it, tag it. Whoever else has moved the
head meanwhile has made the last move impossible: then it begins again, with the fence as it is now.

Each generator yields what is to be done with the table and is sent the answer, or thrown a `TableError`, or
whatever a batch's own rows have raised.
What becomes of every order in which two owners' steps can be done, a test enumerates
(tests/unit/worker/sinks/iceberg, docs/exactly-once.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from definition.sinks.iceberg import MAIN
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, admits, raised
from worker.sinks.iceberg.history import History, StaleError, Stored
from worker.sinks.iceberg.marks import RefName, read_mark, read_ref_name, refs_digest, write_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from worker.sinks.fence import Mark, Owner
    from worker.sinks.iceberg.history import Ref, Snapshot

ATTEMPTS: Final = 8
"""At one claim or batch, each made vain by somebody else's commit."""
INSISTENCE: Final = 4
"""How often what does no harm when it is done twice is tried: any commit to the table can be in its way."""


class TableError(SinkError):
    """The table, or its catalog, has not done what it was asked to, or has not answered."""


@dataclass(frozen=True, slots=True)
class GetRefs:
    """Answered with the branches and tags as they are now, by name."""


@dataclass(frozen=True, slots=True)
class GetSnapshots:
    """Answered with all snapshots there are, by id; with only one of them if it is named."""

    only: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Give the table, which has no snapshot yet, an empty one without a mark."""


@dataclass(frozen=True, slots=True)
class MakeBranch:
    """Make a branch unless it is there."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Write:
    """Put the batch's rows, or none at all, into a branch, in one snapshot with this mark."""

    branch: str
    mark: str
    is_batch: bool


@dataclass(frozen=True, slots=True)
class FastForward:
    """Move the head of `target` to that of `branch`, if it is an ancestor of that when they are moved."""

    target: str
    branch: str


@dataclass(frozen=True, slots=True)
class PutTag:
    """Make a tag, or move it."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a branch or a tag, if it is there."""

    name: str
    is_tag: bool


Ask: TypeAlias = GetRefs | GetSnapshots | Found | MakeBranch | Write | FastForward | PutTag | Drop


Result = TypeVar("Result")


class Outcome(NamedTuple):
    """How a batch went: the fence row now, and whether the batch had been written before."""

    row: FenceRow
    is_duplicate: bool


class Publisher:
    """One process's claims and batches of one owner, one after the other."""

    def __init__(self, owner: Owner, target: str, draw: Callable[[], str]) -> None:
        """`draw` gives hexadecimal digits that nobody else is given."""
        self._owner = owner
        self._target = target
        self._draw = draw
        self._digest = refs_digest(owner, target)
        self._tag = str(self._drawn())
        self._branch: str | None = None
        self._known: Stored | None = None
        self._litter: list[str] = []

    def newest(self) -> Generator[Ask, Any, FenceRow | None]:
        """The fence row; None if the table never saw the task."""
        for _ in range(ATTEMPTS):
            refs: Mapping[str, Ref] = yield GetRefs()
            if self._target not in refs:
                return None
            try:
                found = yield from self._fence(refs, refs[self._target].snapshot)
            except StaleError:
                continue
            return None if found is None else found.row
        raise self._crowded("read")

    def claim(self) -> Generator[Ask, Any, FenceRow]:
        """Raise the fence to the owner's token, by an empty snapshot that carries the last batch's mark on.

        Raises:
            FencedError: a newer owner was here.
            SinkError: it cannot be done, or what is in the table does not say which batch is the last one.
        """
        for _ in range(ATTEMPTS):
            refs: Mapping[str, Ref] = yield GetRefs()
            if self._target not in refs:
                yield from self._begin()
                continue
            head = refs[self._target].snapshot
            try:
                found = yield from self._fence(refs, head)
            except StaleError:
                continue
            row = self._raised(found)
            if found is not None and found.row == row:
                yield from self._remember(found)
            elif not (yield from self._step(refs, head, write_mark(self._owner, row, 0), is_batch=False)):
                continue
            yield from self._clear_up(refs)
            return row
        raise self._crowded("claimed")

    def put(self, mark: Mark, added: int | None) -> Generator[Ask, Any, Outcome]:
        """Put a batch into the table, unless it is there.

        Args:
            mark: which batch it is.
            added: its rows; None if the snapshot's own count says it.

        Raises:
            FencedError: a newer owner has raised the fence.
            OutOfOrderError: the batch does not follow the last one.
            SinkError: it cannot be done, or nobody knows whether it was.
        """
        was_tried = False
        for _ in range(ATTEMPTS):
            refs: Mapping[str, Ref] = yield GetRefs()
            if self._target not in refs:
                raise TableError(self._branch_is_gone())
            head = refs[self._target].snapshot
            try:
                found = yield from self._fence(refs, head)
            except StaleError:
                continue
            row = None if found is None else found.row
            if not admits(row, self._owner, mark) or row is None or found is None:
                kept = yield from self._kept(found)
                return Outcome(kept, is_duplicate=not was_tried)
            new = FenceRow(self._owner.token, self._owner.resets, mark, row.rows)
            was_tried = True
            if (yield from self._step(refs, head, write_mark(self._owner, new, added), is_batch=True)):
                return Outcome(self._fence_row(), is_duplicate=False)
        raise self._crowded("written to")

    def _step(
        self, refs: Mapping[str, Ref], head: int, mark: str, *, is_batch: bool
    ) -> Generator[Ask, Any, bool]:
        """Whether a snapshot with this mark was published as the one after `head`.

        The branch may be another's who has dropped it, and Iceberg then makes it anew, wherever the head is
        at that time; so what was written is looked at before it is published.
        """
        branch = yield from self._branch_at(refs, head)
        self._branch = None
        self._litter.append(branch)
        try:
            yield Write(branch, mark, is_batch)
        except Exception:
            if (yield from self._is_gone(branch)):
                return False
            raise
        now: Mapping[str, Ref] = yield GetRefs()
        if branch not in now:
            return False
        new = now[branch].snapshot
        snapshots: Mapping[int, Snapshot] = yield GetSnapshots(new)
        written = snapshots.get(new)
        if written is None or written.parent != head or written.mark != mark:
            return False
        if not (yield from self._publish(branch, head, new)):
            return False
        self._litter.remove(branch)
        self._branch = branch
        yield from self._remember(Stored(read_mark(self._owner, mark, written.added), new))
        return True

    def _is_gone(self, branch: str) -> Generator[Ask, Any, bool]:
        """Whether somebody has dropped our branch, as a newer owner does: that is why a write failed."""
        try:
            refs: Mapping[str, Ref] = yield GetRefs()
        except TableError:
            return False
        return branch not in refs

    def _publish(self, branch: str, head: int, new: int) -> Generator[Ask, Any, bool]:
        """Whether the head is `new` now. Any commit may have been in the way, or the answer was lost."""
        for _ in range(INSISTENCE):
            try:
                yield FastForward(self._target, branch)
            except TableError:
                refs: Mapping[str, Ref] = yield GetRefs()
                at = refs.get(self._target)
                if at is not None and at.snapshot == new:
                    return True
                if at is None or at.snapshot != head:
                    return False
            else:
                return True
        return False

    def _remember(self, stored: Stored) -> Generator[Ask, Any, None]:
        """Tag what is published, so that it outlives its expiry; only then let go of what is older."""
        yield from self._insist(PutTag(self._tag, stored.at))
        self._known = stored
        litter, self._litter = self._litter, []
        for name in litter:
            yield from self._try(Drop(name, is_tag=False))

    def _kept(self, found: Stored | None) -> Generator[Ask, Any, FenceRow]:
        """The row of a batch that is there, tagged: whoever put it there may not have come to that."""
        if found is None:
            raise SinkError(f"{self._owner}: the fence is gone from the table")
        if self._known is None or self._known.at != found.at:
            yield from self._remember(found)
        return found.row

    def _clear_up(self, refs: Mapping[str, Ref]) -> Generator[Ask, Any, None]:
        """Remove what owners before have left, once what the fence says is under a tag of our own."""
        for name, ref in refs.items():
            read = read_ref_name(name, self._digest)
            if read is not None and read.token <= self._owner.token and name not in {self._tag, self._branch}:
                yield from self._try(Drop(name, ref.is_tag))

    def _fence(self, refs: Mapping[str, Ref], head: int) -> Generator[Ask, Any, Stored | None]:
        """What this process has put there itself it need not read."""
        if self._known is not None and self._known.at == head:
            return self._known
        snapshots: Mapping[int, Snapshot] = yield GetSnapshots()
        return History(self._owner, self._digest, refs, snapshots).fence(head)

    def _raised(self, found: Stored | None) -> FenceRow:
        new = FenceRow(self._owner.token, self._owner.resets)
        return raised(new if found is None else found.row, self._owner)

    def _begin(self) -> Generator[Ask, Any, None]:
        """A new table has no head that a branch could be made at."""
        if self._target != MAIN:
            raise TableError(self._branch_is_gone())
        yield Found()

    def _branch_at(self, refs: Mapping[str, Ref], head: int) -> Generator[Ask, Any, str]:
        """A branch of ours whose head is `head`: the last one, if nobody has written since."""
        if self._branch is not None:
            last = refs.get(self._branch)
            if last is not None and last.snapshot == head:
                return self._branch
            self._litter.append(self._branch)
            self._branch = None
        name = str(self._drawn())
        yield from self._insist(MakeBranch(name, head))
        return name

    def _insist(self, ask: Ask) -> Generator[Ask, Any, None]:
        """Do what may be done twice, though others commit at the same time."""
        for at in range(INSISTENCE):
            try:
                yield ask
            except TableError:
                if at == INSISTENCE - 1:
                    raise
            else:
                return

    def _try(self, ask: Ask) -> Generator[Ask, Any, None]:
        """Do what the next owner does as well if it cannot be done."""
        try:
            yield ask
        except TableError:
            return

    def _fence_row(self) -> FenceRow:
        if self._known is None:
            raise SinkError(f"{self._owner}: nothing was published")
        return replace(self._known.row)

    def _drawn(self) -> RefName:
        return RefName(self._digest, self._owner.token, self._draw())

    def _branch_is_gone(self) -> str:
        remedy = "create it, or leave sink.options.branch out"
        return f"{self._owner}: the table has no branch {self._target}: {remedy}"

    def _crowded(self, done: str) -> SinkError:
        return SinkError(
            f"{self._owner}: the table could not be {done}: each of {ATTEMPTS} attempts met a commit of"
            " somebody else's; one task should write to a table at a time"
        )
