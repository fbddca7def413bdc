"""What a folder of a task is called: by the task's name as far as a file system takes it.

A name may have 249 characters, and what tells resets, sessions and later tasks of one name comes after it
(`~RESETS`, `~session`, `~after~TOKEN`). File systems take 255 bytes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

MOST_BYTES: Final = 255
"""Of one part of a path: that of Linux, and of HDFS as it comes."""
_CUT: Final = "~long~"
"""No name of a task has it, nor does any ending begin so."""
_DIGITS: Final = 16


def folder_name(task: str, ending: str = "") -> str:
    """The name of a folder for `task`, which is ASCII; never the same for two tasks.

    Args:
        task: the name by which sinks and checkpoints know the task.
        ending: what tells this folder of it from others.
    """
    name = task + ending
    if len(name) <= MOST_BYTES:
        return name
    digest = _CUT + sha256(task.encode()).hexdigest()[:_DIGITS]
    return task[: MOST_BYTES - len(digest) - len(ending)] + digest + ending
