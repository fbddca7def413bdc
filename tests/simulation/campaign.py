"""Many histories at once, and what there is to say about one that went wrong."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.history import Figures, History
from tests.simulation.plan import TRANSFERS, Plan, draw
from tests.simulation.shrink import shrink
from tests.simulation.violations import InvariantError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 50
TRACE_LINES = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """What a history showed: a broken invariant, or a rule of the core that raised; `kind` says which."""

    plan: Plan
    kind: str
    message: str
    trace: tuple[str, ...] = ()


@dataclass(slots=True)
class Outcome:
    """What became of some histories."""

    figures: Figures = field(default_factory=Figures)
    faults: list[Fault] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add up."""
        self.figures.add(other.figures)
        self.faults += other.faults


def run_plan(plan: Plan, *, tracing: bool = False) -> Figures | Fault:
    """One history."""
    history = History(plan, tracing=tracing)
    try:
        return history.run()
    except InvariantError as violation:
        return Fault(plan, violation.rule, str(violation), tuple(history.world.trace))
    except Exception as error:  # noqa: BLE001 - whatever a rule raises is what is looked for
        kind = type(error).__name__
        return Fault(plan, kind, f"{kind}: {error}", tuple(history.world.trace))


def run_seeds(seeds: tuple[int, ...], transfers: float = TRANSFERS) -> Outcome:
    """The histories of some seeds, one after another; that share of them with transfers."""
    outcome = Outcome()
    for seed in seeds:
        result = run_plan(draw(seed, transfers))
        if isinstance(result, Fault):
            outcome.faults.append(result)
        else:
            outcome.figures.add(result)
    return outcome


def _collect_seldom() -> None:
    """What is imported stays, and a history leaves few cycles; to look for them took a twentieth of all."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def run_many(first: int, count: int, jobs: int, transfers: float) -> Iterator[Outcome]:
    """`count` histories from the seed `first` on, in `jobs` processes; an outcome each time some are done."""
    with ProcessPoolExecutor(jobs, initializer=_collect_seldom) as pool:
        seeds = range(first, first + count)
        chunks = [tuple(seeds[start : start + CHUNK]) for start in range(0, count, CHUNK)]
        for done in as_completed([pool.submit(run_seeds, chunk, transfers) for chunk in chunks]):
            yield done.result()


def explain(fault: Fault) -> str:
    """The shortest history found that shows the same fault, as text."""

    def fails(plan: Plan) -> bool:
        result = run_plan(plan)
        return isinstance(result, Fault) and result.kind == fault.kind

    again = run_plan(shrink(fault.plan, fails), tracing=True)
    assert isinstance(again, Fault), "a plan is its history, whether traced or not"
    actions = "\n".join(f"  {action.at_ms:>6} {action.what} ({action.seed})" for action in again.plan.actions)
    trace = "\n".join(f"  {line}" for line in again.trace[-TRACE_LINES:])
    head = f"seed {fault.plan.seed}: {again.message}\n{again.plan.weather}"
    return f"{head}\nactions:\n{actions}\nat the end:\n{trace}"
