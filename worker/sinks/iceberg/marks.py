"""What the sink leaves in a table: marks in the summaries of snapshots, and the name of a tag.

A mark is the task's fence row, in JSON. It is part of the snapshot it is about, so both are there or neither.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from definition.sinks.iceberg import OWN_REFS
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, Mark

if TYPE_CHECKING:
    from worker.sinks.fence import Owner


class _Stored(msgspec.Struct):
    """A mark as it is in a summary; `added` is None where the snapshot's own count of new rows says it."""

    group: str
    task: str
    token: int
    resets: int
    checkpoint: str | None
    batch: int | None
    plan: str | None
    rows_before: int
    added: int | None


def key_of(owner: Owner) -> str:
    """The property of a snapshot's summary in which a task's marks are."""
    return f"sparkherd-fence-{owner.digest}"


def write_mark(owner: Owner, row: FenceRow, added: int | None) -> str:
    """The text of a mark.

    Args:
        owner: whose it is.
        row: the fence row with this snapshot; its `rows` are those before it.
        added: the rows that come with it; None if the snapshot's own count says it.
    """
    last = row.last
    stored = _Stored(
        owner.group,
        owner.task,
        row.token,
        row.resets,
        None if last is None else last.checkpoint,
        None if last is None else last.batch_id,
        None if last is None else last.plan,
        row.rows,
        added,
    )
    return msgspec.json.encode(stored).decode()


def read_mark(owner: Owner, text: str, added: int) -> FenceRow:
    """The fence row that a mark is.

    Args:
        owner: whose it is to be.
        text: the mark.
        added: the snapshot's own count of new rows.

    Raises:
        SinkError: it cannot be read, or is another task's.
    """
    try:
        stored = msgspec.json.decode(text, type=_Stored)
    except msgspec.DecodeError:
        raise SinkError(f"the mark {key_of(owner)} in the table cannot be read: {text[:200]}") from None
    if (stored.group, stored.task) != (owner.group, owner.task):
        raise SinkError(f"the mark {key_of(owner)} is of task {stored.task} of group {stored.group}")
    last = None
    if stored.checkpoint is not None and stored.batch is not None:
        last = Mark(stored.checkpoint, stored.batch, stored.plan)
    rows = stored.rows_before + (added if stored.added is None else stored.added)
    return FenceRow(stored.token, stored.resets, last, rows)


def tag_of(owner: Owner, target: str) -> str:
    """The name of the tag at the task's last snapshot in the branch that it writes to."""
    return OWN_REFS + sha256(f"{owner.group}/{owner.task}@{target}".encode()).hexdigest()[:12]
