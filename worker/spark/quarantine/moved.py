"""A quarantine elsewhere that the task had when it was started last, and has no more (docs/exactly-once.md).

A batch may be between the two steps: put aside there, and not written. Who does it without that quarantine
puts rows aside once more, or writes them. So each start notes the place in the checkpoint, and one that has
another place, or none, raises the fence of the former one and sees what the last batch there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from definition.quarantine import Quarantine
from telemetry.foreign_errors import FAILURES
from worker.query_engine import QueryError
from worker.sinks.errors import FencedError
from worker.spark.quarantine.identity import are_one, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from worker.sinks.fence import FenceRow
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.checkpoint_rules import Checkpoint

log = structlog.get_logger(__name__)

NOTE_FILE: Final = "sparkherd-quarantine.json"
"""In a checkpoint: where rows are put aside, as the definition says it, with references to secrets."""


class Noted(msgspec.Struct, frozen=True):
    """The place; None if it is beside the rows of the sink, or there is none."""

    elsewhere: Quarantine | None = None


def place_of(quarantine: Quarantine | None) -> Quarantine | None:
    """What of a quarantine says where it is; None if it is not elsewhere."""
    if quarantine is None or quarantine.format is None:
        return None
    return Quarantine(format=quarantine.format, table=quarantine.table, options=quarantine.options)


def leave_former(
    folder: CheckpointFolder,
    present: Quarantine | None,
    claim: Callable[[Quarantine], FenceRow],
    reached: Checkpoint,
    written: Iterable[FenceRow],
) -> None:
    """See that no batch is between the steps in a quarantine that is left, and note the present one.

    Args:
        folder: the task's checkpoint.
        present: of the definition as it is stored, if rows are put aside elsewhere.
        claim: raises the fence of a quarantine, and tells what is there.
        reached: how far the query has come by its checkpoint.
        written: what the fence rows of its sink said.

    Raises:
        QueryError: there is such a batch, or one that was begun, and the former quarantine does not answer.
    """
    former, present = _noted(folder), place_of(present)
    if former == present:
        return
    if former is not None and not are_one(former, present):
        _require_done(former, claim, reached, list(written))
    folder.create(NOTE_FILE, msgspec.json.encode(Noted(present)).decode())


def _noted(folder: CheckpointFolder) -> Quarantine | None:
    text = folder.read(NOTE_FILE)
    try:
        return None if text is None else msgspec.json.decode(text, type=Noted).elsewhere
    except msgspec.DecodeError:
        log.warning("a note cannot be read", checkpoint=folder.place, file=NOTE_FILE)
        return None


def _is_in_sink(batch_id: int, query_id: str | None, written: Sequence[FenceRow]) -> bool:
    """Whether the sink has a batch of the checkpoint, as its fence row says."""
    lasts = (row.last for row in written if row.last is not None)
    return any(last.checkpoint == query_id and last.batch_id >= batch_id for last in lasts)


def _require_done(
    former: Quarantine,
    claim: Callable[[Quarantine], FenceRow],
    reached: Checkpoint,
    written: Sequence[FenceRow],
) -> None:
    """By the fence rows: since the checkpoint was read, an older owner may have come further."""
    place, query_id, planned = shown(former), reached.query_id, reached.planned
    try:
        last = claim(former).last
    except FencedError:
        raise
    except FAILURES as error:
        is_begun = planned is not None and planned != reached.committed
        if is_begun and planned is not None and not _is_in_sink(planned, query_id, written):
            raise QueryError.at("quarantine", _UNANSWERED.format(shown=place, begun=planned)) from error
        log.warning(
            "a quarantine that was left does not answer", quarantine=place, error=type(error).__name__
        )
        return
    if last is None or last.checkpoint != query_id or _is_in_sink(last.batch_id, query_id, written):
        return
    raise QueryError.at("quarantine", _BETWEEN.format(shown=place, begun=last.batch_id), permanent=True)


_BETWEEN = (
    "rows of batch {begun} were put aside at {shown}, and the others not written: bring that quarantine back"
    " for this batch, or reset the task"
)
_UNANSWERED = (
    "it was at {shown}, which does not answer: whether rows of batch {begun} were put aside there is not"
    " known; bring that quarantine back, or reset the task"
)
