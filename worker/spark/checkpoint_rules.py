"""What a checkpoint must look like before a query may go on from it; rules without I/O.

Spark is kind to a damaged checkpoint: without its `metadata` it takes a new query id, without its offsets it
begins at 0, with an older copy it plans the batches since then anew. Each of them loses rows or writes them
twice, and none says so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.query_engine import QueryError
from worker.sinks.fence import foreign, gap, rolled_back

if TYPE_CHECKING:
    from protocol.messages.tasks import Reached
    from worker.sinks.fence import FenceRow, Owner

_VERSION = re.compile(r"v\d+")
REMEDY = "bring back a whole copy, or reset the task to start it anew"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a query has come by its checkpoint.

    `planned` is the last batch that was begun and `plan` a digest of its entry; `committed` the last one that
    was finished. All are None in a checkpoint that was never used.
    """

    place: str
    query_id: str | None = None
    planned: int | None = None
    plan: str | None = None
    committed: int | None = None


def whole(checkpoint: Checkpoint) -> None:
    """Raises `QueryError` if a part of the checkpoint is missing."""
    last, done = checkpoint.planned, checkpoint.committed
    if checkpoint.query_id is None and (last is not None or done is not None):
        raise damaged(checkpoint.place, "its file metadata is missing")
    if done is not None and (last is None or last < done):
        raise damaged(checkpoint.place, f"batch {done} is finished, but there is no entry offsets/{done}")


def knows_of(place: str, planned: int | None, reached: Reached) -> None:
    """Raises `QueryError` if a checkpoint's last batch, `planned`, is before the one that was reached."""
    if planned is not None and planned >= reached.batch_id:
        return
    has = "holds no batch" if planned is None else f"ends with batch {planned}"
    raise QueryError(
        f"the checkpoint {place} {has}, but the task has come to batch {reached.batch_id} in the checkpoint"
        f" {reached.checkpoint} at {reached.member_id}; give all workers of the group one --checkpoint-root"
        " that they all see, bring back a whole copy, or reset the task to start it anew",
        permanent=True,
    )


def fits(checkpoint: Checkpoint, owner: Owner, row: FenceRow) -> None:
    """Raises `OutOfOrderError` if the checkpoint and the sink's fence row tell different stories."""
    last = row.last
    if last is None:
        if checkpoint.committed is not None:
            raise gap(owner, checkpoint.committed + 1, None)
        return
    if checkpoint.query_id != last.checkpoint:
        raise foreign(owner, checkpoint.query_id, last)
    if checkpoint.planned is None or checkpoint.planned < last.batch_id:
        raise rolled_back(owner, 0 if checkpoint.planned is None else checkpoint.planned + 1, last)
    both_told = None not in {checkpoint.plan, last.plan}
    if checkpoint.planned == last.batch_id and both_told and checkpoint.plan != last.plan:
        raise rolled_back(owner, checkpoint.planned, last)
    if checkpoint.committed is not None and checkpoint.committed > last.batch_id:
        raise gap(owner, checkpoint.committed + 1, last.batch_id)


def read_query_id(place: str, text: str) -> str:
    """The query id in the file `metadata`."""
    try:
        return str(json.loads(text)["id"])
    except (ValueError, TypeError, KeyError):
        raise damaged(place, "its file metadata cannot be read") from None


def check_entry(place: str, name: str, text: str, lines: int) -> None:
    """Raises `QueryError` if a log's entry `name` is cut off: it has a version and `lines` lines at least."""
    head, *rest = text.split("\n")
    if not _VERSION.fullmatch(head) or len(rest) < lines or not all(map(_is_whole, rest)):
        raise damaged(place, f"its entry {name} cannot be read")


def _is_whole(line: str) -> bool:
    """A line of JSON, or what a source calls an offset, which may be anything else."""
    if not line.startswith(("{", "[")):
        return line != ""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def damaged(place: str, what: str) -> QueryError:
    """The refusal of a checkpoint with a part that is missing or broken."""
    return QueryError(f"the checkpoint {place} is damaged: {what}; {REMEDY}")
