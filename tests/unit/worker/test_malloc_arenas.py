"""Where the C library takes the memory of a worker's threads from, in a process of its own."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys

import pytest

from worker.malloc_arenas import VARIABLES

THREADS = """
import ctypes, sys, threading
from worker.malloc_arenas import use_one_arena

print(use_one_arena() if sys.argv[1] == "one" else None)
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(4)

def take():
    libc.malloc(10_000)
    together.wait()  # none has an arena that another has left

threads = [threading.Thread(target=take) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
told = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, told)
libc.fclose(told)
print(open(sys.argv[2]).read().count("<heap nr="))
"""

HOLES = """
import ctypes
from worker.malloc_arenas import give_back_free_memory

def resident():
    status = open("/proc/self/status").read()
    return int(status.partition("RssAnon:")[2].split()[0])

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
bare = resident()
pieces = [libc.malloc(60_000) for _ in range(1000)]
for piece in pieces:
    ctypes.memset(piece, 1, 60_000)
for piece in pieces[:-1]:
    libc.free(ctypes.c_void_p(piece))
before = resident() - bare
give_back_free_memory()
print(before, resident() - bare)
"""

pytestmark = pytest.mark.skipif(
    not os.confstr("CS_GNU_LIBC_VERSION"), reason="arenas are glibc's; elsewhere nothing is done"
)


@pytest.mark.parametrize(
    ("how", "more", "said"),
    [
        ("one", {}, "True\n1\n"),
        ("as it is", {}, "None\n5\n"),
        ("one", {"MALLOC_ARENA_MAX": "3"}, "False\n3\n"),
        ("one", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}, "False\n2\n"),
        ("one", {"GLIBC_TUNABLES": "glibc.malloc.check=0"}, "True\n1\n"),
    ],
)
def test_threads_share_an_arena_unless_somebody_has_decided_otherwise(
    tmp_path: object, how: str, more: dict[str, str], said: str
) -> None:
    """Glibc's own count of them; without it each thread has one."""
    inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-c", THREADS, how, f"{tmp_path}/arenas.xml"]
    done = subprocess.run(command, env=inherited | more, capture_output=True, text=True, check=True)
    assert done.stdout == said


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("cli.commands.daemons", "use_one_arena()\n    return run_to_its_end"),
        ("cli.commands.run", "use_one_arena()\n"),
        ("worker.isolation.child", "use_one_arena()\n    log_for_relay()"),
    ],
)
def test_each_process_that_runs_queries_does_so_before_all_else(module: str, call: str) -> None:
    """Arenas that threads have already stay: so it is the first thing."""
    assert call in inspect.getsource(importlib.import_module(module))


def test_memory_in_which_nothing_is_any_more_is_given_back() -> None:
    """One piece at the end of many keeps the C library from giving the others back by itself."""
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 2
