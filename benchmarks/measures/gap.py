"""How long a task stands still when it moves: from the last row of its old owner to the first of the new one.

A real manager and real workers as processes, twelve tasks that always have input, half of them with a state,
into one PostgreSQL, whose table of fences is looked at each 10 ms. What it is compared with is in the same
run, before and after: plain drivers with a warm Spark, whose operator stops queries after their batch and
starts them at once in the other one. A worker that joins starts four tasks; so does the driver that its moves
are compared with. When one is drained, two others start two each; so do the drivers then.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from benchmarks.peers.plain_drivers import PlainDrivers
from benchmarks.tools.figures import Curve, ResultLine, shares, summary
from benchmarks.tools.moved_queries import STATEFUL, TASKS
from benchmarks.tools.moving_herd import MovingHerd
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.tools.standstill import Gap
    from tests.integration.postgres import Server

WORKERS = ("anna", "berta", "carla")
CYCLES = 3
"""Drains of a worker whose drain is undone then, and as many moves to and fro of the plain queries."""
QUICK_CYCLES = 1
MOST_MOVES = 2
"""Of a task in a rolling restart: once it must, when its own worker is restarted."""
PLAIN = "four queries restarted by hand in a warm driver"
PLAIN_TWO = "two queries restarted by hand in each of two warm drivers"
COLD, DRAIN, WARM = "a worker joins with a cold JVM", "a worker is drained", "a worker joins with a warm JVM"
KILL, FREEZE, ROLLING = "a worker is killed", "a worker is frozen", "all workers are restarted in turn"
GOALS = {COLD: 1.3, DRAIN: 1.0, WARM: 1.0}
_PARTS = (
    "timed in the workers, of the 3.2 s of a query with a state 0.5 pass until the former owner's batch is"
    " done, its query has ended and the token is granted anew, 0.7 in the start, of which what can be done"
    " before the grant is done, and the rest in its first batch, four at a time on two cores that three JVMs"
    " share, of which each has four tasks"
)
REASONS = {
    DRAIN: _PARTS,
    WARM: _PARTS,
    COLD: _PARTS + "; a JVM that was warmed by one small query has yet to compile what four queries need",
}
TWO_EACH = {DRAIN, KILL, FREEZE}
"""Where two workers start two tasks each."""

Gaps = defaultdict[str, "list[Gap]"]
"""By what made the tasks move."""


def measure(cycles: int = CYCLES, *, strike: bool = True) -> Iterator[ResultLine | Curve]:
    """The plain queries, the herd, and the plain ones again; `strike` is with kill, freeze and restarts."""
    gaps: Gaps = defaultdict(list)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = stack.enter_context(running())
        _move_by_hand(gaps, server, folder / "before", cycles)
        with ExitStack() as herd_stack:
            herd = MovingHerd(herd_stack, folder / "herd", server.new_database("postgresql+psycopg"))
            _join_and_drain(gaps, herd, cycles)
            if strike:
                _strike(gaps, herd)
                _roll(gaps, herd)
        _move_by_hand(gaps, server, folder / "after", cycles)
    yield from _lines(gaps)


def quick() -> Iterator[ResultLine | Curve]:
    """Joins and drains only."""
    return measure(QUICK_CYCLES, strike=False)


def _move_by_hand(gaps: Gaps, server: Server, folder: Path, cycles: int) -> None:
    database = sa.make_url(server.new_database("postgresql")).render_as_string(hide_password=False)
    four, two, other_two = TASKS[::2][1:5], TASKS[::2][1:3], TASKS[1::2][1:3]
    with ExitStack() as stack:
        drivers = PlainDrivers(stack, folder, database)
        drivers.move(four)  # nobody counts the first ones
        drivers.move((), back=four)
        for _ in range(cycles):
            gaps[PLAIN] += drivers.move(four) + drivers.move((), back=four)
            gaps[PLAIN_TWO] += drivers.move(two, back=other_two) + drivers.move(other_two, back=two)


def _join_and_drain(gaps: Gaps, herd: MovingHerd, cycles: int) -> None:
    herd.create_tasks()
    for name in WORKERS[:-1]:
        herd.start(name)
    herd.settle(len(WORKERS) - 1)
    newcomer = WORKERS[-1]
    gaps[COLD] += _after(herd, lambda: herd.start(newcomer))
    for _ in range(cycles):
        gaps[DRAIN] += _after(herd, lambda: herd.drain(newcomer), busy=len(WORKERS) - 1)
        gaps[WARM] += _after(herd, lambda: herd.drain(newcomer, undo=True))


def _strike(gaps: Gaps, herd: MovingHerd) -> None:
    """Another one takes the place of each that is struck, with a cold JVM."""
    killed, frozen = WORKERS[:2]
    gaps[KILL] += _after(herd, lambda: herd.kill(killed), busy=len(WORKERS) - 1)
    gaps[COLD] += _after(herd, lambda: herd.start(killed))
    worker = herd.freeze(frozen)
    gaps[FREEZE] += herd.settle(len(WORKERS) - 1)
    worker.kill()
    gaps[COLD] += _after(herd, lambda: herd.start(frozen))


def _roll(gaps: Gaps, herd: MovingHerd) -> None:
    """The next one when the herd has settled, as somebody does who is careful."""
    for name in WORKERS:
        herd.stop(name)
        gaps[ROLLING] += _after(herd, lambda name=name: herd.start(name))  # type: ignore[misc]


def _after(herd: MovingHerd, do: Callable[[], None], busy: int = len(WORKERS)) -> list[Gap]:
    do()
    return herd.settle(busy)


def _lines(gaps: Mapping[str, Sequence[Gap]]) -> Iterator[ResultLine | Curve]:
    for by_hand in (PLAIN, PLAIN_TWO):
        found = gaps[by_hand]
        yield ResultLine(f"gap: {by_hand}", None, *summary(_seconds(found)), "s", _told(found))
    for what, found in gaps.items():
        if what not in {PLAIN, PLAIN_TWO, ROLLING}:
            plain = statistics.median(_seconds(gaps[PLAIN_TWO if what in TWO_EACH else PLAIN]))
            ratios = [each / plain for each in _seconds(found)]
            reason = REASONS.get(what, "")
            yield ResultLine(
                f"gap: {what}", GOALS.get(what), *summary(ratios), "times", _told(found), reason=reason
            )
    if rolled := gaps.get(ROLLING):
        yield from _rolled(rolled)
    series = {what: shares(_seconds(found)) for what, found in gaps.items()}
    yield Curve("standstill of tasks that move", "percent of the moves", "seconds", series, is_share=True)


def _rolled(found: Sequence[Gap]) -> Iterator[ResultLine]:
    moves = Counter(gap.task for gap in found)
    note = f"{len(found)} moves of {len(moves)} tasks; {_told(found)}"
    yield ResultLine(f"gap: {ROLLING}, standstill together", None, sum(_seconds(found)), 0, "s", note)
    what = f"gap: {ROLLING}, moves of the task that moves most"
    yield ResultLine(what, MOST_MOVES, max(moves.values()), 0, "moves")


def _seconds(found: Sequence[Gap]) -> list[float]:
    return [gap.seconds for gap in found]


def _told(found: Sequence[Gap]) -> str:
    """Of all, and of those without and with a state: half of them within, and all of them within."""
    kinds = {
        "all": _seconds(found),
        "stateless": [gap.seconds for gap in found if gap.task not in STATEFUL],
        "stateful": [gap.seconds for gap in found if gap.task in STATEFUL],
    }
    return "; ".join(
        f"{len(each)} {kind}: p50 {statistics.median(each):.2f} s, max {max(each):.2f} s"
        for kind, each in kinds.items()
        if each
    )
