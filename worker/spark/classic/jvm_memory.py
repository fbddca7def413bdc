"""Heap, collections and direct buffers of the worker's JVM, by Java's own beans."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_HEAP: Final = "Heap memory"
_DIRECT: Final = "direct"
_BUFFERS: Final = "java.lang.management.BufferPoolMXBean"
_OLD: Final = frozenset(
    {"Tenured Gen", "PS Old Gen", "G1 Old Gen", "ZHeap", "ZGC Old Generation", "Shenandoah"}
)
"""The last ones have no generations, or only since Java 21: then it is the whole heap."""
_USAGE: Final = re.compile(
    r"init = -?\d+\(-?\d+K\) used = (\d+)\(\d+K\) committed = \d+\(\d+K\) max = (-?\d+)"
)
_POOL: Final = re.compile(r"(?:\{|, )([^=]+)=init = -?\d+\(-?\d+K\) used = (\d+)")


class JvmMemory(NamedTuple):
    """One look. `after_gc_bytes` is None before the first collection, `max_bytes` if there is no bound.

    `live_bytes` is what the last collection of the old generation has left there, None before the first.
    `gc_ms` is the time of all collections so far, `gc_share` their share of the time since the look before.
    """

    used_bytes: int
    max_bytes: int | None
    after_gc_bytes: int | None
    live_bytes: int | None
    gc_ms: int
    gc_share: float | None
    direct_bytes: int | None


class JvmBeans:
    """Keeps hold of the beans, so that a look is a dozen calls to Java, some milliseconds."""

    def __init__(self, jvm: Any, now: Callable[[], float] = time.monotonic) -> None:
        """`now` is the clock that shares are reckoned by, in seconds."""
        factory = jvm.java.lang.management.ManagementFactory
        self._heap = factory.getMemoryMXBean()
        self._collectors = list(factory.getGarbageCollectorMXBeans())
        pools = factory.getMemoryPoolMXBeans()
        self._heap_pools = {pool.getName() for pool in pools if pool.getType().toString() == _HEAP}
        self._old = next((pool for pool in pools if is_old_generation(pool.getName())), None)
        buffers = factory.getPlatformMXBeans(jvm.java.lang.Class.forName(_BUFFERS))
        self._direct = next((each for each in buffers if each.getName() == _DIRECT), None)
        self._now = now
        self._before: tuple[float, int] | None = None

    def look(self) -> JvmMemory:
        """As it is now."""
        used, most = usage_of(self._heap.getHeapMemoryUsage().toString())
        gc_ms = sum(int(each.getCollectionTime()) for each in self._collectors)
        return JvmMemory(
            used_bytes=used,
            max_bytes=most,
            after_gc_bytes=self._after_gc(),
            live_bytes=self._live(),
            gc_ms=gc_ms,
            gc_share=self._share(gc_ms),
            direct_bytes=None if self._direct is None else int(self._direct.getMemoryUsed()),
        )

    def _after_gc(self) -> int | None:
        """Of the pools of the heap, right after whichever collection was the last."""
        infos = [info for each in self._collectors if (info := each.getLastGcInfo()) is not None]
        if not infos:
            return None
        last = max(infos, key=lambda info: int(info.getEndTime()))
        return used_in(last.getMemoryUsageAfterGc().toString(), self._heap_pools)

    def _live(self) -> int | None:
        """The lower edge of what is in use: young collections promote garbage, too, and do not count."""
        usage = None if self._old is None else self._old.getCollectionUsage()
        return None if usage is None else int(usage.getUsed()) or None

    def _share(self, gc_ms: int) -> float | None:
        now, before = self._now(), self._before
        self._before = (now, gc_ms)
        if before is None or now <= before[0]:
            return None
        return round(min((gc_ms - before[1]) / 1000 / (now - before[0]), 1.0), 4)


def is_old_generation(pool: str) -> bool:
    """Whether a pool of memory is where a heap has what lives long, by the names of Java's collectors."""
    return pool in _OLD


def usage_of(text: str) -> tuple[int, int | None]:
    """What is in use and what may be, from Java's text of a `MemoryUsage`; without a bound, None.

    Raises:
        ValueError: it is none.
    """
    found = _USAGE.search(text)
    if found is None:
        raise ValueError(f"no memory usage of Java's: {text}")
    most = int(found[2])
    return int(found[1]), most if most > 0 else None


def used_in(text: str, pools: Iterable[str]) -> int:
    """What is in use in `pools` together, from Java's text of a map of them."""
    used = {name: int(size) for name, size in _POOL.findall(text)}
    return sum(used.get(name, 0) for name in pools)
