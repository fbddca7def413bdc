"""The rule of the fence, without a database (architecture §3, protocol §6).

As with Kafka's transactional producers: the task is the producer id, its token the epoch, and the id of
Spark's batch the sequence number. The checkpoint is part of it because batch ids mean something only
within one: a query that starts anew from an empty checkpoint counts from 0 again, and without this check its
first batches would be taken for duplicates and dropped. So is the batch's plan: Spark repeats a batch after a
crash, the last one only and as it was planned; from an older copy of the checkpoint, though, it plans other
batches under the same numbers, and dropping those would lose their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256

from worker.sinks.errors import FencedError, OutOfOrderError, SinkError


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes: a task, and the fencing token its query runs under.

    `resets` is the number of the last reset (docs/tasks.md), each of which begins a new checkpoint; it only
    grows, and is 0 before the first. `skips` says that not every batch comes here, as only those come to a
    quarantine of which rows are put aside.
    """

    group: str
    task: str
    token: int
    resets: int = 0
    skips: bool = False

    @property
    def digest(self) -> str:
        """Stands for the group and the task where their names do not fit."""
        return sha256(f"{self.group}/{self.task}".encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"task {self.task} of group {self.group}"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which batch it is: its number, within which checkpoint, and what Spark had planned for it.

    `checkpoint` is Spark's query id, the same after every restart; `plan` a digest of the batch's entry in
    the checkpoint's offset log, None where that log cannot be read.
    """

    checkpoint: str
    batch_id: int
    plan: str | None = None


@dataclass(frozen=True, slots=True)
class FenceRow:
    """What a sink remembers of a task; `last` is the last batch written, None before the first."""

    token: int
    resets: int = 0
    last: Mark | None = None
    rows: int = 0


class Verdict(Enum):
    """What is to become of a batch; everything but the first two is refused."""

    WRITE = "write"
    DUPLICATE = "duplicate"
    FENCED = "fenced"
    UNCLAIMED = "unclaimed"
    FOREIGN = "foreign"
    ROLLED_BACK = "rolled back"
    GAP = "gap"


def raised(stored: FenceRow, owner: Owner) -> FenceRow:
    """The fence row once `owner` has claimed the task; a reset makes it forget the batches before.

    Raises:
        FencedError: a newer owner was there before.
    """
    if owner.token < stored.token or owner.resets < stored.resets:
        raise fenced(owner, stored)
    if owner.resets > stored.resets:
        return FenceRow(owner.token, owner.resets, None, stored.rows)
    return replace(stored, token=owner.token)


def judge(stored: FenceRow | None, owner: Owner, mark: Mark) -> Verdict:
    """What the fence row `stored` says to the batch `mark` of `owner`."""
    if stored is None or owner.resets > stored.resets:
        return Verdict.UNCLAIMED
    if owner.token < stored.token or owner.resets < stored.resets:
        return Verdict.FENCED
    last = stored.last
    if last is None:
        return Verdict.WRITE if mark.batch_id == 0 or owner.skips else Verdict.GAP
    if mark.checkpoint != last.checkpoint:
        return Verdict.FOREIGN
    if mark.batch_id > last.batch_id:
        return Verdict.WRITE if mark.batch_id == last.batch_id + 1 or owner.skips else Verdict.GAP
    is_last = mark.batch_id == last.batch_id and (None in {mark.plan, last.plan} or mark.plan == last.plan)
    return Verdict.DUPLICATE if is_last else Verdict.ROLLED_BACK


def admits(stored: FenceRow | None, owner: Owner, mark: Mark) -> bool:
    """Whether the batch `mark` of `owner` is to be written; not if it is the last one that was, once more.

    Args:
        stored: the fence row as the place has it, in the step that writes.
        owner: who writes.
        mark: the batch.

    Raises:
        FencedError: a newer owner was here.
        OutOfOrderError: the batch does not follow the last one written, or is not what that was.
        SinkError: nobody has claimed the task here.
    """
    verdict = judge(stored, owner, mark)
    if verdict not in {Verdict.WRITE, Verdict.DUPLICATE}:
        raise refusal(verdict, owner, stored, mark)
    return verdict is Verdict.WRITE


def fenced(owner: Owner, stored: FenceRow) -> FencedError:
    """The refusal of an owner that is older than the one `stored` knows."""
    if owner.token >= stored.token:
        return FencedError(
            f"{owner} is fenced: the sink knows of its reset {stored.resets}, its manager does not, because a"
            " copy of its database from before that was put back: stop the task and reset it again"
        )
    return FencedError(
        f"{owner} is fenced: its token {owner.token} is older than {stored.token}, a newer owner's; if nobody"
        " has the task, a clock was wrong: stop the managers and run"
        f" `sparkherd db restored --above {stored.token}`"
    )


def refusal(verdict: Verdict, owner: Owner, stored: FenceRow | None, mark: Mark) -> SinkError:
    """The error for a `verdict` that refuses a batch: what is wrong, and what a person can do about it."""
    if stored is None or verdict is Verdict.UNCLAIMED:
        return SinkError(
            f"the fence row of {owner} is gone from the sink: restart the task to claim it again"
        )
    if verdict is Verdict.FENCED:
        return fenced(owner, stored)
    if stored.last is None or verdict is Verdict.GAP:
        return gap(owner, mark.batch_id, None if stored.last is None else stored.last.batch_id)
    if verdict is Verdict.FOREIGN:
        return foreign(owner, mark.checkpoint, stored.last)
    return rolled_back(owner, mark.batch_id, stored.last)


def gap(owner: Owner, batch_id: int, last: int | None) -> OutOfOrderError:
    """The checkpoint is ahead of the sink."""
    written = "none" if last is None else last
    return OutOfOrderError(
        f"{owner} is at batch {batch_id}, but the last batch in the sink is {written}:"
        " the batches between them are missing; point the sink to where they are, or reset the task"
    )


def foreign(owner: Owner, checkpoint: str | None, last: Mark) -> OutOfOrderError:
    """The checkpoint is not the one that the sink's rows are from; None says that it is empty."""
    runs_on = "an empty checkpoint" if checkpoint is None else f"checkpoint {checkpoint}"
    return OutOfOrderError(
        f"{owner} runs on {runs_on}, but the sink holds its rows up to batch {last.batch_id} of checkpoint"
        f" {last.checkpoint}: bring that checkpoint back, or reset the task to have the rows written again"
    )


def rolled_back(owner: Owner, batch_id: int, last: Mark) -> OutOfOrderError:
    """The checkpoint is an older copy: the batch is not what the sink holds under that number."""
    return OutOfOrderError(
        f"{owner} is at batch {batch_id} of an older copy of checkpoint {last.checkpoint}: the sink holds"
        f" batches up to {last.batch_id} that were planned otherwise; bring the newest copy back, or reset"
        " the task to have the rows written again"
    )
