"""What a manager remembers of tasks since it took their group up: figures, lives, moves (docs/console.md)."""

from __future__ import annotations

import msgspec

from protocol.messages.base import Response


class FiguresPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a task did in the `interval_ms` that begin at `at_ms`.

    `batch_ms` is the longest batch seen, `lag` how many rows it was behind at last; None if nobody has said.
    """

    at_ms: int
    rows: float
    batches: int
    batch_ms: float | None
    lag: int | None = None


class TaskHistoryLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task changed its state or its owner.

    `group` and `task` are the group that it was in then, and its name there, of a line that a transfer has
    brought along; null of those since.
    """

    at_ms: int
    generation_id: int
    state: str
    owner: str | None
    token: int
    cause: str | None = None
    group: str | None = None
    task: str | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task went from one owner to another; None is nobody."""

    at_ms: int
    task: str
    left: str | None
    joined: str | None


class TaskHistoryResponse(Response, frozen=True, kw_only=True):
    """A task's last hour in figures, and its `history`, both oldest first.

    `since_ms` is when this manager took the group up, and so began to remember; null if it has had the group
    from its first day.
    """

    task: str
    since_ms: int | None
    interval_ms: int
    points: tuple[FiguresPoint, ...]
    history: tuple[TaskHistoryLine, ...]


class MovesResponse(Response, frozen=True, kw_only=True):
    """The latest moves of a group's tasks, oldest first; `since_ms` as in `TaskHistoryResponse`."""

    since_ms: int | None
    moves: tuple[Move, ...]
