"""Whether a group has workers that could run tasks it does not have yet, by the rules of assignors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.base import Member as Candidate
from assignors.base import Task as Wanted
from assignors.eligibility import Eligibility
from manager.core.tasks.homes import WHY_NOBODY
from protocol.connectors import NOTHING
from protocol.worker_metadata import WorkerMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manager.core.member import Member
    from manager.core.stored_rows import TaskRow


def candidate(member: Member, metadata: WorkerMetadata) -> Candidate:
    """What an assignor goes by."""
    return Candidate(
        member.id,
        instance_id=member.row.instance_id,
        labels=metadata.labels,
        spark=metadata.spark,
        formats=metadata.formats,
    )


def unplaced(members: Iterable[Member], tasks: Iterable[TaskRow]) -> Iterator[tuple[str, str]]:
    """The tasks that none of `members` could run, each with the reason; who is drained runs nothing."""
    present = [member for member in members if not member.row.draining]
    are_former = not all(member.homes for member in present)
    told = [(member, member.worker_metadata() or WorkerMetadata()) for member in present]
    eligibility = Eligibility([candidate(member, metadata) for member, metadata in told])
    for row in tasks:
        wanted = Wanted(row.task, worker=row.worker, labels=row.labels, needs=row.needs or NOTHING)
        why = WHY_NOBODY if are_former else eligibility.why_nobody(wanted)
        if why is not None:
            yield row.task, why
