"""What a sparkherd worker tells under each assignor it supports, and what it is given (PROTOCOL.md §5)."""

from __future__ import annotations

import msgspec

PROTOCOL_TYPE = "sparkherd"


class WorkerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Join metadata of a worker.

    `owned` maps task names to the tokens they are held under. `claiming` are the tasks of claims that are not
    answered yet: they may have been granted all the same, and the answer be on its way.
    """

    owned: dict[str, int] = {}
    claiming: tuple[str, ...] = ()
    capacity: float = 1.0
    labels: dict[str, str] = {}
    url: str | None = None
    tasks_revision: int = 0


class TaskAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks one worker is given; the leader's own also says why which tasks are nobody's."""

    tasks: tuple[str, ...] = ()
    left_out: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
