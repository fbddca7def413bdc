"""What stands in a Delta table for a task's fence, and what it means; rules without I/O.

A table keeps a number for each *application id*, for good, and compares it in the commit that changes it. The
id is the task's; the number has the token in its upper bits and the batch in its lower ones, so an owner with
a higher token is above all batches of the owners before. What does not fit into the number stands beside it
in the commit (`Note`), or has an id of its own, which outlives the commit's file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, Mark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from worker.sinks.fence import Owner

BATCH_BITS: Final = 31
"""Of a batch's number plus 1, 0 for none; tokens have 32, and all of it is to be a positive 64-bit number."""
NONE: Final = -1
"""The version of an id that a table does not know."""
_RESETS: Final = "#resets"
_ROWS: Final = "#rows"
_CHECKPOINT: Final = "#checkpoint/"
_CLUSTERED: Final = "#clustered"
"""Set with the columns of a table that is to be clustered, which is another commit."""
_CLUSTERING: Final = "clustering"
"""What the writers of a table need that is clustered, or was."""
_LOST: Final = "#lost"
"""Set to the number of resets when the task has found its own commits gone from the table's log."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is written beside the number, as a commit's `userMetadata`.

    Args:
        sparkherd: group and task, for people who read the table's history.
        version: the number that it stands beside.
        table: the id that the table had.
        rows: how many the task had put there before this commit.
        plan: of the last batch, None if there is none or it is not known.
        attempt: unlike any other; tells a write from one that Delta has passed over.
    """

    sparkherd: str
    version: int
    table: str
    rows: int
    plan: str | None = None
    attempt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table as it was looked at.

    Args:
        table: its id, which a table that is dropped and made again has not.
        path: of its folder, with its scheme.
        log_store: the class that its commits go through, in this Spark.
        versions: the numbers of the task's ids.
        note: of the commit that has set the task's number last; None if it was not found.
        metrics: Delta's of that commit.
        columns: the fields of its schema, in Spark's JSON; empty before it has any.
        partition_by: the columns it is laid apart by.
        configuration: its properties.
        features: those that its readers and writers need.
        at: the version of the table.
    """

    table: str
    path: str
    log_store: str
    versions: Mapping[str, int]
    note: Note | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Mapping[str, Any], ...] = ()
    partition_by: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    at: int = 0

    def version(self, owner: Owner) -> int:
        """The number of the owner's task."""
        return self.versions.get(app_id(owner), NONE)


def app_id(owner: Owner) -> str:
    """The application id of a task; names of groups and tasks have neither / nor #."""
    return f"sparkherd/{owner.group}/{owner.task}"


def version_of(row: FenceRow) -> int:
    """The number that stands for a fence row.

    Raises:
        SinkError: it has no room for the batch.
    """
    batch = 0 if row.last is None else row.last.batch_id + 1
    if batch >> BATCH_BITS:
        raise SinkError(f"batch {batch - 1} is more than a Delta table can keep for a task: reset the task")
    return (row.token << BATCH_BITS) + batch


def versions_of(row: FenceRow, owner: Owner) -> dict[str, int]:
    """The numbers of all ids of a task, for a commit that has no rows."""
    app = app_id(owner)
    known = {app: version_of(row), app + _RESETS: row.resets, app + _ROWS: row.rows}
    return known if row.last is None else {**known, app + _CHECKPOINT + row.last.checkpoint: row.resets}


def defined(row: FenceRow, owner: Owner, *, is_clustered: bool) -> dict[str, int]:
    """The numbers of a commit that gives the table its columns."""
    marks = {app_id(owner) + _CLUSTERED: 1} if is_clustered else {}
    return {**versions_of(row, owner), **marks}


def is_to_be_clustered(seen: Seen, owner: Owner) -> bool:
    """Whether the task has made the table, and come no further."""
    return app_id(owner) + _CLUSTERED in seen.versions and _CLUSTERING not in seen.features


def begun(seen: Seen, row: FenceRow, owner: Owner, checkpoint: str) -> dict[str, int]:
    """The numbers before the first batch of a checkpoint, which the fence row does not tell yet.

    One that was begun after the same reset, and given up before its first batch, does not count any more.
    """
    others = dict.fromkeys(_checkpoints(seen, owner, row.resets), NONE)
    return {**versions_of(row, owner), **others, app_id(owner) + _CHECKPOINT + checkpoint: row.resets}


def lost(row: FenceRow, owner: Owner) -> dict[str, int]:
    """The numbers that keep the task from going on before it is reset."""
    return {**versions_of(row, owner), app_id(owner) + _LOST: owner.resets}


def row_of(seen: Seen | None, owner: Owner) -> FenceRow | None:
    """What a table remembers of a task; None if it never saw it.

    Raises:
        SinkError: the table was made again since, or commits of the task's are gone from its log.
    """
    if seen is None or (version := seen.version(owner)) == NONE:
        return None
    token, batch = version >> BATCH_BITS, version & ((1 << BATCH_BITS) - 1)
    resets = seen.versions.get(app_id(owner) + _RESETS, 0)
    if seen.versions.get(app_id(owner) + _LOST, NONE) >= owner.resets:
        raise shortened(owner, seen.path)
    note = seen.note if seen.note is not None and seen.note.version == version else None
    if note is not None and note.table != seen.table:
        if owner.resets > resets:
            return FenceRow(token, resets)
        raise made_again(owner, seen.path)
    rows = seen.versions.get(app_id(owner) + _ROWS, 0) if note is None else note.rows + rows_in(seen.metrics)
    if batch == 0:
        return FenceRow(token, resets, None, rows)
    last = Mark(_checkpoint(seen, owner, resets), batch - 1, None if note is None else note.plan)
    return FenceRow(token, resets, last, rows)


def _checkpoint(seen: Seen, owner: Owner, resets: int) -> str:
    """The one that was begun after the last reset."""
    found = _checkpoints(seen, owner, resets)
    if len(found) != 1:
        raise SinkError(
            f"{owner}: the table {seen.path} does not say which checkpoint its rows are from: reset the task"
        )
    return found[0].removeprefix(app_id(owner) + _CHECKPOINT)


def _checkpoints(seen: Seen, owner: Owner, resets: int) -> list[str]:
    """The ids that name one."""
    prefix = app_id(owner) + _CHECKPOINT
    return [key for key, at in seen.versions.items() if key.startswith(prefix) and at == resets]


def rows_in(metrics: Mapping[str, Any]) -> int:
    """How many rows a commit has put into the table; a MERGE copies others, which do not count."""
    merged = ("numTargetRowsInserted", "numTargetRowsUpdated")
    names = merged if merged[0] in metrics else ("numOutputRows",)
    return sum(int(metrics.get(name, 0)) for name in names)


def made_again(owner: Owner, place: str) -> SinkError:
    """The refusal of a table that is not the one that the task has written to."""
    return SinkError(
        f"{owner}: the table {place} was dropped and made again: what the task had written is gone from it;"
        " bring the former one back, or reset the task to have all written again"
    )


def shortened(owner: Owner, place: str) -> SinkError:
    """The refusal of a table whose log has ended earlier than the task had seen it end."""
    return SinkError(
        f"{owner}: the newest entries of the _delta_log of the table {place} were deleted while the task"
        " wrote there, and batches with them: put the table back to a copy of before, or reset the task to"
        " have all written again"
    )
