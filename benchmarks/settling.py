"""Ten workers without Spark and 900 tasks, default settings: how soon all is claimed after each change."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import ExitStack

from herd import Herd, create_tasks
from measuring import Line

WORKERS = 10
TASKS = 900


def measure() -> list[Line]:
    """Seconds, each the one run there is: a herd cannot settle twice."""
    with ExitStack() as stack:
        herd = Herd(stack)
        for number in range(WORKERS):
            herd.hire(f"w{number}")
        herd.wait_for_joins(WORKERS)
        herd.wait_for_members(WORKERS)
        return [*_created(herd), _joined(herd), _left(herd)]


def _created(herd: Herd) -> list[Line]:
    posted = time.monotonic()
    asyncio.run(create_tasks(herd.url, TASKS))
    answered = time.monotonic()
    last = herd.wait_for_starts(TASKS)
    assert set(herd.shares().values()) == {TASKS // WORKERS}
    return [
        Line(f"{TASKS} tasks over {WORKERS} workers: first POST to last claim", 1.0, last - posted, 0, "s"),
        Line(f"{TASKS} tasks over {WORKERS} workers: last POST to last claim", 1.0, last - answered, 0, "s"),
    ]


def _joined(herd: Herd) -> Line:
    herd.hire("newcomer")
    joining = herd.wait_for_joins(1)
    last = herd.wait_for_starts(TASKS // (WORKERS + 1))
    assert max(herd.shares().values()) - min(herd.shares().values()) <= 1
    return Line(f"a worker joins {WORKERS}: to all claims granted and balanced", 0.2, last - joining, 0, "s")


def _left(herd: Herd) -> Line:
    told = herd.signal("newcomer", signal.SIGTERM)
    last = herd.wait_for_starts(TASKS // (WORKERS + 1))
    herd.workers["newcomer"].wait()
    return Line("one leaves in order: to all claims granted", 0.2, last - told, 0, "s")


if __name__ == "__main__":
    for line in measure():
        print(line)
