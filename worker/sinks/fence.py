"""The rule of the fence, without a database (DESIGN.md §3, PROTOCOL.md §6).

As with Kafka's transactional producers: the task is the producer id, its token the epoch, and the id of
Spark's batch the sequence number. The checkpoint is part of it because batch ids mean something only
within one: a query that starts anew from an empty checkpoint counts from 0 again, and without this check its
first batches would be taken for duplicates and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from worker.sinks.errors import FencedError, OutOfOrderError, SinkError

if TYPE_CHECKING:
    from worker.sinks.base import Owner


@dataclass(frozen=True, slots=True)
class FenceRow:
    """What a sink remembers of a task; `checkpoint` and `batch_id` are None before its first batch."""

    token: int
    checkpoint: str | None = None
    batch_id: int | None = None
    rows: int = 0


class Verdict(Enum):
    """What is to become of a batch; everything but the first two is refused."""

    WRITE = "write"
    DUPLICATE = "duplicate"
    FENCED = "fenced"
    UNCLAIMED = "unclaimed"
    FOREIGN = "foreign"
    GAP = "gap"


def judge(stored: FenceRow | None, token: int, checkpoint: str, batch_id: int) -> Verdict:
    """What the fence row `stored` says to batch `batch_id` of `checkpoint` under `token`."""
    if stored is None:
        return Verdict.UNCLAIMED
    if token < stored.token:
        return Verdict.FENCED
    if stored.batch_id is None:
        return Verdict.WRITE if batch_id == 0 else Verdict.GAP
    if checkpoint != stored.checkpoint:
        return Verdict.FOREIGN
    if batch_id <= stored.batch_id:
        return Verdict.DUPLICATE
    return Verdict.WRITE if batch_id == stored.batch_id + 1 else Verdict.GAP


def fenced(owner: Owner, stored: int) -> FencedError:
    """The refusal of an owner whose token is older than the `stored` one."""
    return FencedError(f"{owner} is fenced: its token {owner.token} is older than {stored}, a newer owner's")


def refusal(
    verdict: Verdict, owner: Owner, stored: FenceRow | None, checkpoint: str, batch_id: int
) -> SinkError:
    """The error for a `verdict` that refuses a batch: what is wrong, and what a person can do about it."""
    if stored is None:
        return SinkError(
            f"the fence row of {owner} is gone from the sink: restart the task to claim it again"
        )
    if verdict is Verdict.FENCED:
        return fenced(owner, stored.token)
    remedy = "or delete its fence row to have the rows written again from the start of this checkpoint"
    if verdict is Verdict.FOREIGN:
        return OutOfOrderError(
            f"{owner} runs on checkpoint {checkpoint}, but the sink holds its rows up to batch"
            f" {stored.batch_id} of checkpoint {stored.checkpoint}: bring that checkpoint back, {remedy}"
        )
    last = "none" if stored.batch_id is None else stored.batch_id
    return OutOfOrderError(
        f"{owner} is at batch {batch_id}, but the last batch in the sink is {last}: the batches between them"
        " are missing; point the sink to where they are, or start the task from a fresh checkpoint"
    )
