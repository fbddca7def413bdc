"""Ten workers without Spark and 900 tasks, default settings: how soon all is claimed after each change."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.herd import Herd, create_tasks

WORKERS = 10
TASKS = 900
HERDS = 9
FIRST = f"{TASKS} tasks over {WORKERS} workers: first POST to last claim"
LAST = f"{TASKS} tasks over {WORKERS} workers: last POST to last claim"
JOINS = f"a worker joins {WORKERS}: to all claims granted and balanced"
LEAVES = "one leaves in order: to all claims granted"
GOALS = {FIRST: 1.0, LAST: 1.0, JOINS: 0.2, LEAVES: 0.2}
REASONS = {
    FIRST: "0.6 to 0.75 ms of the manager's processor time for each POST, one after the other, then 50 ms in"
    " which nothing more may come, and 0.25 to 0.3 s of ten workers' processor time on two cores",
    JOINS: "the manager's processor time, 0.05 to 0.09 s, and the workers', one after the other",
    LEAVES: "as for the one that joins",
}


def measure() -> list[ResultLine]:
    """Seconds, of a few herds: one settles once."""
    herds = [_settle() for _ in range(HERDS)]
    return [
        ResultLine(
            what, goal, *summary([seconds[what] for seconds in herds]), "s", reason=REASONS.get(what, "")
        )
        for what, goal in GOALS.items()
    ]


def _settle() -> dict[str, float]:
    with ExitStack() as stack:
        herd = Herd(stack)
        for number in range(WORKERS):
            herd.start_worker(f"w{number}")
        herd.wait_for_joins(WORKERS)
        herd.wait_for_members(WORKERS)
        created, settled = _created(herd)
        return {FIRST: settled, LAST: settled - created, JOINS: _joined(herd), LEAVES: _left(herd)}


def _created(herd: Herd) -> tuple[float, float]:
    """When the last POST was answered, and the last claim granted, since the first POST."""
    posted = create_tasks(herd.url, TASKS)
    answered = time.monotonic()
    last = herd.wait_for_starts(TASKS)
    assert set(herd.shares().values()) == {TASKS // WORKERS}
    return answered - posted, last - posted


def _joined(herd: Herd) -> float:
    herd.start_worker("newcomer")
    joining = herd.wait_for_joins(1)
    last = herd.wait_for_starts(TASKS // (WORKERS + 1))
    assert max(herd.shares().values()) - min(herd.shares().values()) <= 1
    return last - joining


def _left(herd: Herd) -> float:
    told = herd.signal("newcomer", signal.SIGTERM)
    last = herd.wait_for_starts(TASKS // (WORKERS + 1))
    herd.workers["newcomer"].wait()
    return last - told
