"""What the sink leaves in a table: marks in the summaries of snapshots, and names of branches and tags.

A mark is the task's fence row, in JSON. It is part of the snapshot it is about, so both are there or neither.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from definition.sinks.iceberg import OWN_REFS
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, Mark

if TYPE_CHECKING:
    from worker.sinks.fence import Owner

_NAME = re.compile(rf"{OWN_REFS}([0-9a-f]{{12}})_([0-9]{{1,19}})_([0-9a-f]+)")


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


def order(row: FenceRow) -> tuple[int, int, int]:
    """By which of two marks of a task the later one is known, wherever they are."""
    return row.token, row.resets, -1 if row.last is None else row.last.batch_id


class RefName(NamedTuple):
    """The name of a branch or tag of a task's: one drawn by one process, under one token."""

    digest: str
    token: int
    drawn: str

    def __str__(self) -> str:
        return f"{OWN_REFS}{self.digest}_{self.token}_{self.drawn}"


def refs_digest(owner: Owner, target: str) -> str:
    """Stands for the task and the branch it writes to."""
    return sha256(f"{owner.group}/{owner.task}@{target}".encode()).hexdigest()[:12]


def read_ref_name(text: str, digest: str) -> RefName | None:
    """The name, if it is one of `digest`'s."""
    match = _NAME.fullmatch(text)
    if match is None or match[1] != digest:
        return None
    return RefName(match[1], int(match[2]), match[3])
