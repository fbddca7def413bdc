"""The `sticky` assignor on Kafka's own grid against those of kafka-python and aiokafka: time and moves.

Each assignment has a process of its own (`peers/sticky_case.py`). Theirs may take minutes and any memory, so
each is given a time and a memory; where one has not come to an end, no larger case of the same kind is tried,
and a ratio against it is one against the time that it was given.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.tools.figures import Curve, ResultLine, growth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OURS = "sparkherd"
RIVALS = {"kafka": "kafka-python", "aiokafka": "aiokafka"}
MEMBERS = (100, 1_000, 10_000)
TASKS_EACH = (5, 10, 50)
CHANGES = {"full": "from nothing", "joins": "one joins", "leaves": "one leaves"}
RUNS = 3
PATIENCE_S = 30.0
ONCE_S = 5.0
"""What takes longer is measured once: ours stays thirty times below the goal there."""
GOAL = 0.1

Shape: TypeAlias = tuple[int, int]
"""Members and tasks."""
Told: TypeAlias = dict[str, float]


@dataclass(slots=True)
class Results:
    """What one library made of one kind of change; `gave_up` is the first case that it did not end."""

    library: str
    change: str
    patience_s: float
    told: dict[Shape, list[Told]] = field(default_factory=dict)
    gave_up: Shape | None = None

    def run(self, shape: Shape) -> None:
        """Once more, unless a case as large was too much already, or this one takes too long for more."""
        if self.gave_up and self.gave_up <= shape:
            return
        if shape in self.told and self.seconds(shape) > ONCE_S:
            return
        case = (self.library, *map(str, shape), self.change)
        command = [sys.executable, "-m", "benchmarks.peers.sticky_case", *case]
        patience_s = None if self.library == OURS else self.patience_s
        try:
            done = subprocess.run(command, capture_output=True, check=True, timeout=patience_s)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            if patience_s is None:
                raise
            self.gave_up = shape
            self.told.pop(shape, None)
        else:
            self.told.setdefault(shape, []).append(json.loads(done.stdout))

    def seconds(self, shape: Shape) -> float:
        """The median; the patience where there is none."""
        told = self.told.get(shape)
        return statistics.median(each["seconds"] for each in told) if told else self.patience_s

    def ended(self) -> list[tuple[float, float]]:
        """Tasks and seconds of all cases that came to an end."""
        return sorted((tasks, self.seconds((members, tasks))) for members, tasks in self.told)


def measure() -> Iterator[ResultLine | Curve]:
    """The whole grid, and the case that the design names."""
    yield from _measure(MEMBERS, PATIENCE_S)
    largest = Results(OURS, "leaves", PATIENCE_S)
    for _ in range(RUNS):
        largest.run((1_000, 100_000))
    yield ResultLine("sticky, 1,000 x 100,000, one leaves", 1.0, largest.seconds((1_000, 100_000)), 0, "s")


def quick() -> Iterator[ResultLine | Curve]:
    """The small part of the grid."""
    yield from _measure(MEMBERS[:1], 5.0)


def _measure(counts: Sequence[int], patience_s: float) -> Iterator[ResultLine | Curve]:
    for change, words in CHANGES.items():
        ours = Results(OURS, change, patience_s)
        theirs = [Results(library, change, patience_s) for library in RIVALS]
        for members in counts:
            shapes = [(members, members * each) for each in TASKS_EACH]
            for shape in shapes * RUNS:
                for results in (ours, *theirs):
                    results.run(shape)
            yield _time(words, members, shapes, ours, theirs)
        yield _moves(words, ours, theirs)
        sizes, costs = zip(*ours.ended(), strict=True)
        yield growth(f"sticky, {words}: growth of time with tasks", 1.2, sizes, costs)
        yield _curve(words, [ours, *theirs])


def _time(words: str, members: int, shapes: list[Shape], ours: Results, theirs: list[Results]) -> ResultLine:
    """Against the faster of theirs, the worst of the row."""
    ratios = [ours.seconds(shape) / min(each.seconds(shape) for each in theirs) for shape in shapes]
    what = f"sticky, {members:,} x {', '.join(map(str, TASKS_EACH))}, {words}: time against theirs"
    note = "; ".join(_told(each, shapes) for each in theirs)
    return ResultLine(what, GOAL, max(ratios), (max(ratios) - min(ratios)) / 2, "times", note)


def _told(theirs: Results, shapes: list[Shape]) -> str:
    texts = [
        f"{theirs.seconds(shape):.3g}" if shape in theirs.told else f"> {theirs.patience_s:g}"
        for shape in shapes
    ]
    return f"{RIVALS[theirs.library]} {', '.join(texts)} s"


def _moves(words: str, ours: Results, theirs: list[Results]) -> ResultLine:
    """In any case that one of theirs came to the end of; what is level within one can be compared."""
    more = [
        told[0]["moves"] - each.told[shape][0]["moves"]
        for shape, told in ours.told.items()
        for each in theirs
        if shape in each.told
    ]
    if any(each["spread"] > 1 for told in ours.told.values() for each in told):
        raise RuntimeError("not balanced within one")
    return ResultLine(f"sticky, {words}: moves more than theirs, at worst", 0, max(more), 0, "moves")


def _curve(words: str, all_results: list[Results]) -> Curve:
    series = {RIVALS.get(each.library, OURS): each.ended() for each in all_results}
    return Curve(f"sticky, {words}", "tasks", "seconds", series)
