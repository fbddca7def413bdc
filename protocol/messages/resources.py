"""What a worker as a whole takes of its machine (protocol §5, Report)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from protocol.messages.base import MAX_INT, Millis

Bytes = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
Share = Annotated[float, msgspec.Meta(ge=0, le=MAX_INT)]


class WorkerResources(msgspec.Struct, frozen=True, kw_only=True):
    """As of the last look; null is what the worker cannot tell, as of a Spark that is another machine's.

    `heap_after_gc_bytes` is what was in use right after the last collection, `heap_live_bytes` what the last
    one of the old generation has left there, if all tasks share one heap; `gc_ms` the time that
    collections have taken since the JVM began, `gc_share` their share of the time since the look before.
    `python_processes` are those that Spark has started; pages that they share count in `python_bytes` for
    each. `checkpoint_bytes` is what the checkpoints of the worker's group take, `checkpoint_free_bytes` and
    `checkpoint_disk_bytes` are of the whole disk that they are on. `loop_lag_ms` is how late the worker's
    event loop was at most since the look before.
    """

    heap_bytes: Bytes | None = None
    heap_max_bytes: Bytes | None = None
    heap_after_gc_bytes: Bytes | None = None
    heap_live_bytes: Bytes | None = None
    gc_ms: Millis | None = None
    gc_share: Share | None = None
    direct_bytes: Bytes | None = None
    python_processes: Count | None = None
    python_bytes: Bytes | None = None
    checkpoint_bytes: Bytes | None = None
    checkpoint_free_bytes: Bytes | None = None
    checkpoint_disk_bytes: Bytes | None = None
    loop_lag_ms: Millis | None = None
