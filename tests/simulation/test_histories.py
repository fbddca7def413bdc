from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from manager.core import coordinator, purgatory
from manager.core.tasks import reports
from protocol.errors import ErrorCode
from tests.simulation.campaign import Fault, Outcome, explain, run_plan, run_seeds
from tests.simulation.history import History
from tests.simulation.lease_table import LeaseTable
from tests.simulation.manager import SimManager
from tests.simulation.plan import draw

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

pytestmark = pytest.mark.no_cover
"""Measuring takes two thirds of the time, and tells of hardly a branch that the unit tests do not come to."""

PARTS = 10
HISTORIES = 300


@cache
def played(part: int) -> Outcome:
    """What became of every tenth history."""
    return run_seeds(tuple(range(part, HISTORIES, PARTS)))


def first_fault(seeds: Iterable[int]) -> Fault | None:
    """Of the first history that goes wrong."""
    results = (run_plan(draw(seed)) for seed in seeds)
    return next((result for result in results if isinstance(result, Fault)), None)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_invariants_hold_through_any_history(part: int) -> None:
    """Crashes, freezes, take-overs, bad storage and network, liars: one owner a token, order at the end."""
    outcome = played(part)
    assert not outcome.faults, explain(outcome.faults[0])
    assert outcome.figures.histories == HISTORIES // PARTS


def test_everything_happens_in_the_histories() -> None:
    """They are worth something only if managers die, tasks move, go, begin anew, and zombies are fenced."""
    whole = Outcome()
    for part in range(0, PARTS, 3):
        whole.add(played(part))
    figures = whole.figures
    assert min(figures.crashes, figures.takeovers, figures.rebalances) > 0
    assert min(figures.resets, figures.fenced_writes, figures.unfenced_writes) > 0
    assert figures.poisoned > figures.quarantined > 0
    assert min(figures.paced, figures.completed) > 0
    assert min(figures.transferred, figures.kept) > 0


def test_a_seed_is_a_history() -> None:
    """The same seed gives the same steps, so that a failing one can be looked at again."""
    first, second = History(draw(7), tracing=True), History(draw(7), tracing=True)
    assert first.run() == second.run()
    assert len(first.world.trace) == len(second.world.trace)


def test_a_broken_rule_is_found_and_its_history_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """With tokens unchecked, a stale report changes an owner's task; a few actions are enough to show it."""
    monkeypatch.setattr(reports, "_check_token", lambda *_: ErrorCode.NONE)
    fault = first_fault(range(20))
    assert fault
    told = explain(fault)
    assert told.count("\n") < len(fault.plan.actions) + 80
    assert "actions:" in told


def test_a_heartbeat_that_is_never_answered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports keep the session of a worker whose held heartbeat hangs; that it hangs is seen all the same."""
    monkeypatch.setitem(coordinator.DEADLINES, purgatory.HELD, lambda *_: None)
    kinds = {fault.kind for fault in run_seeds(tuple(range(10))).faults}
    assert "every request is answered" in kinds


def stormy_clusters() -> tuple[int, ...]:
    """Seeds of three managers whose words to the storage are often late by more than a lease."""
    plans = (draw(seed) for seed in range(4000))
    return tuple(plan.seed for plan in plans if plan.managers == 3 and plan.weather.late > 0.1)


def test_writes_of_former_holders_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With epochs unchecked, a late transaction overwrites what the next manager has stored."""
    monkeypatch.setattr(LeaseTable, "is_held", lambda *_: True)
    assert first_fault(stormy_clusters())


def test_decisions_of_an_earlier_lease_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing abandoned, a manager that lost a slot goes on to write what it had decided for it."""

    def only_close(manager: SimManager, slots: Collection[int]) -> None:
        manager.close(slots)

    monkeypatch.setattr(SimManager, "step_down", only_close)
    assert first_fault(stormy_clusters())
