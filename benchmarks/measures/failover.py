"""How soon the tasks of a worker that is killed, or frozen, are claimed elsewhere, with default settings.

A killed process's connections close, which is noticed; a frozen one is only silent. Whether what a frozen one
does once it thaws is harmless is not measured here but tested.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.herd import Herd, create_tasks
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 4
TASKS = 120
RUNS = 5
FREEZES = 3
SESSION_S = WorkerSettings(manager=("http://localhost",), group="g").session_timeout_ms / 1000
KILLED_GOAL_S = 2.0
FROZEN_GOAL_S = SESSION_S + 1


def measure() -> Iterator[ResultLine]:
    """Killed, then frozen."""
    yield from quick()
    what = f"a worker is frozen (session {SESSION_S:g} s): to its tasks claimed elsewhere"
    yield ResultLine(what, FROZEN_GOAL_S, *summary(_struck(signal.SIGSTOP, FREEZES)), "s")


def quick() -> Iterator[ResultLine]:
    """Killed only: nobody waits for sessions to end."""
    what = "a worker is killed: to its tasks claimed elsewhere"
    yield ResultLine(what, KILLED_GOAL_S, *summary(_struck(signal.SIGKILL, RUNS)), "s")


def _struck(how: signal.Signals, runs: int) -> list[float]:
    """Seconds from each strike at one of the workers to the last claim; another one takes its place."""
    with ExitStack() as stack:
        herd = Herd(stack)
        names = [f"w{number}" for number in range(WORKERS)]
        for name in names:
            herd.start_worker(name)
        herd.wait_for_joins(WORKERS)
        herd.wait_for_members(WORKERS)
        create_tasks(herd.url, TASKS)
        herd.wait_for_starts(TASKS)
        return [_strike(herd, how, names, number) for number in range(runs)]


def _strike(herd: Herd, how: signal.Signals, names: list[str], number: int) -> float:
    struck = herd.signal(names.pop(0), how)
    last = herd.wait_for_starts(TASKS // WORKERS)
    names.append(f"replacement{number}")
    herd.start_worker(names[-1])
    herd.wait_for_joins(1)
    herd.wait_for_starts(TASKS // WORKERS)
    return last - struck
