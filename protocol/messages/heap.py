"""Heaps that grow, and what that may be due to (protocol §5, Quarantine)."""

from __future__ import annotations

from typing import Literal

import msgspec

CANDIDATES_SHOWN = 10
"""Of the tasks that may be why a heap grows."""


class HeapRise(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker's JVM keeps of its heap after collections grows, and nobody knows with which task.

    It grew `from_bytes` to `to_bytes` in the `over_ms` since `since_ms` (1970). `candidates` counts the tasks
    that may be why; `tasks` are the first ten.
    """

    since_ms: int
    over_ms: int
    from_bytes: int
    to_bytes: int
    candidates: int
    tasks: tuple[str, ...]


class HeapSuspicion(msgspec.Struct, frozen=True, kw_only=True):
    """A heap grew while a task ran, which may be due to it.

    It was that of `member_id`, and grew `from_bytes` to `to_bytes` in the `over_ms` since `since_ms` (1970).
    `left_bytes` is what was left there when the task was gone, null if that is not known. `ground` is why it
    is laid to this task, and `said` all of it for people.
    """

    member_id: str
    since_ms: int
    over_ms: int
    from_bytes: int
    to_bytes: int
    left_bytes: int | None
    ground: Literal["alone", "state", "others_cleared"]
    said: str
