"""How much of a local disk the checkpoints of a group take, and how much is left."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.messages.base import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_EVERY_S: Final = 60.0
_SHARE: Final = 99
"""One part in `_SHARE` + 1 of the time at most goes into looking through the files."""
_BLOCK: Final = 512
"""Bytes, whatever the file system's own blocks are."""


class Disk(NamedTuple):
    """In bytes. `used` is what the folder takes, as of the last time that its files were looked through.

    `free` and `size` are as much as can be told at most: some shared file systems claim to have exbibytes.
    """

    used: int
    free: int
    size: int


class CheckpointDisk:
    """Looks through the files once in a while, for there may be many; at what is free each time."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.monotonic) -> None:
        """`folder` is the group's, `now` the clock, in seconds."""
        self._folder = folder
        self._now = now
        self._due: float | None = None
        self._used = 0

    def look(self) -> Disk | None:
        """As it is now; None if there is no such folder yet."""
        try:
            disk = shutil.disk_usage(self._folder)
        except OSError:
            return None
        began = self._now()
        if self._due is None or began >= self._due:
            self._used = sum(_sizes(self._folder))
            ended = self._now()
            self._due = ended + max(_EVERY_S, _SHARE * (ended - began))
        return Disk(self._used, min(disk.free, MAX_INT), min(disk.total, MAX_INT))


def _sizes(folder: Path) -> Iterator[int]:
    """What each file takes on the disk; queries delete theirs all the time, and such a one takes nothing."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(place, name)).st_blocks * _BLOCK  # noqa: PTH118 - quicker, of thousands
            except OSError:
                continue
