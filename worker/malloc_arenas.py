"""How the C library keeps the memory of this process.

A worker has many threads that come and go, each with its connections and statements. glibc gives threads
arenas of their own (eight for each core), and what is freed in one of them serves no other: one arena takes
less (120 MiB in place of 128 without tasks, `make soak`), and Python's lock lets the threads allocate one
after the other anyway. The holes in it are given back from time to time.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

M_ARENA_MAX: Final = -8
"""Of glibc's <malloc.h>."""
VARIABLES: Final = {"MALLOC_ARENA_MAX": "", "GLIBC_TUNABLES": "glibc.malloc.arena_max"}
"""By which somebody may have decided it otherwise: those that say this."""


def use_one_arena(environ: Mapping[str, str] = os.environ) -> bool:
    """Have all threads that begin from now on share the arena of the first one.

    Returns whether it is so: another C library knows nothing of arenas, and what `environ` says goes first.
    """
    if any(name in environ and said in environ[name] for name, said in VARIABLES.items()):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_ARENA_MAX, 1))


def give_back_free_memory() -> None:
    """Have the C library give pages back in which nothing is any more; some milliseconds, in a thread.

    By itself it gives back what lies at the end of its memory only, and connections and statements that come
    and go leave holes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
