"""How Python's collector of cycles is kept from holding up the event loop.

A manager keeps a million objects for a hundred thousand tasks, of which hardly any is ever part of a cycle. A
full collection looks at all of them, for a quarter of a second in which nobody is answered. So what has
outlived one is left out of those that follow, and only once an hour all is looked at. What no cycle holds is
freed at once in any case, left out or not.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WHOLE_S: Final = 3600.0
"""How long a cycle of objects that are left out may stay, in seconds."""
_FULL: Final = 2
"""The generation that a full collection is one of."""


@contextmanager
def short_full_collections(now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Have it so within the block.

    Args:
        now: the time, in seconds.
    """
    keeper = _Keeper(now)
    gc.callbacks.append(keeper)
    try:
        yield
    finally:
        gc.callbacks.remove(keeper)
        gc.unfreeze()


class _Keeper:
    """Called by the collector before and after each collection."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._whole_at = now()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] != _FULL:
            return
        if phase == "stop":
            gc.freeze()
        elif self._now() - self._whole_at >= WHOLE_S:
            self._whole_at = self._now()
            gc.unfreeze()
