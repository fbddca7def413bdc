"""Folders for files with secrets, which go with the process that made them, or with the next start of one.

A process that is killed clears nothing up. So a folder is locked while its process lives, and who comes next
removes those that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PREFIX = "sparkherd-jvm-"


@contextmanager
def private_folder(names: Collection[str]) -> Iterator[str]:
    """A folder that only the user can read, for as long as the context lasts; its like of dead processes go.

    Args:
        names: the files that may be put into it; a folder with others in it is not taken for a left one.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _remove_if_left(left, names)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, _opened(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder


def _remove_if_left(folder: Path, names: Collection[str]) -> None:
    """An empty one may be about to be locked, and holds no secrets."""
    with suppress(OSError), _opened(folder) as descriptor:  # another user's, held, or gone meanwhile
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = {each.name for each in folder.iterdir()}
        if there and there <= set(names):
            for name in there:
                os.unlink(name, dir_fd=descriptor)
            folder.rmdir()


@contextmanager
def _opened(folder: str | Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
