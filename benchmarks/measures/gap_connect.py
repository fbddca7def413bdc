"""How long a task stands still behind Spark Connect when its worker dies, and when it is moved in order.

One real server, two workers on it, six tasks that have input every two seconds, half of them with a state. A
killed worker leaves its queries running, and the other one takes them over as they run; of a worker that is
drained they are stopped in order, and started anew. Both are told in distances between two batches of a query
that nobody touches, which is what is seen of one that does not stand still.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.moved_queries import EVERY_S, STATEFUL, STATELESS
from benchmarks.tools.moving_herd import MovingHerd
from tests import connect_server
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = ("anna", "berta")
TASKS = (*STATELESS[:3], *STATEFUL[:3])
CYCLES = 4
QUICK_CYCLES = 1
GOAL = 1.5
GOAL_OF_A_DRAIN = 2.0
"""Distances between two batches: the new owner waits for the batch under way."""


def measure(cycles: int = CYCLES) -> Iterator[ResultLine]:
    """Kills and drains, in turn."""
    killed: list[float] = []
    drained: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        database = stack.enter_context(running()).new_database("postgresql+psycopg")
        server = stack.enter_context(connect_server.running(folder, folder))
        herd = MovingHerd(stack, folder / "herd", database, server.url)
        herd.create_tasks(TASKS)
        for name in WORKERS:
            herd.start(name)
        herd.settle(len(WORKERS))
        for _ in range(cycles):
            killed += _kill(herd, WORKERS[0])
            drained += _drain(herd, WORKERS[1])
    for what, goal, found in (("killed", GOAL, killed), ("drained", GOAL_OF_A_DRAIN, drained)):
        note = f"{len(found)} moves: p50 {statistics.median(found):.2f} s, max {max(found):.2f} s"
        distances = [each / EVERY_S for each in found]
        line = f"gap behind Spark Connect: a worker is {what}"
        yield ResultLine(line, goal, *summary(distances), "batches", note)


def quick() -> Iterator[ResultLine]:
    """Each once."""
    return measure(QUICK_CYCLES)


def _kill(herd: MovingHerd, name: str) -> list[float]:
    """Its tasks stand still or not, all on the other one then; a new one in its place has some again."""
    herd.kill(name)
    gaps = herd.settle(len(WORKERS) - 1)
    herd.start(name)
    herd.settle(len(WORKERS))
    return [gap.seconds for gap in gaps]


def _drain(herd: MovingHerd, name: str) -> list[float]:
    herd.drain(name)
    gaps = herd.settle(len(WORKERS) - 1)
    herd.drain(name, undo=True)
    herd.settle(len(WORKERS))
    return [gap.seconds for gap in gaps]
