"""Transfers among all else that goes wrong: what these histories have in them, and that they notice."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from manager.core.tasks import homes, transfers
from protocol.states import TransferStep
from tests.simulation.campaign import Fault, explain, run_plan, run_seeds
from tests.simulation.plan import draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulation.campaign import Outcome

pytestmark = pytest.mark.no_cover
"""As in test_histories.py."""

SOME = range(24)
"""Seeds of which all histories have transfers here."""


@cache
def played() -> Outcome:
    """What became of these histories."""
    return run_seeds(tuple(SOME), transfers=1)


def first_fault(seeds: Iterable[int] = SOME) -> Fault | None:
    """Of the first history that goes wrong."""
    results = (run_plan(draw(seed, 1)) for seed in seeds)
    return next((result for result in results if isinstance(result, Fault)), None)


def test_tasks_go_from_group_to_group_whatever_goes_wrong() -> None:
    """Some arrive and some stay, while workers and managers die; none is lost or doubled, or runs twice."""
    outcome = played()
    assert not outcome.faults, explain(outcome.faults[0])
    assert min(outcome.figures.transferred, outcome.figures.kept) > 20
    assert min(outcome.figures.crashes, outcome.figures.takeovers) > 0


def test_histories_without_transfers_are_the_same_whatever_the_share() -> None:
    """A seed that failed years ago can still be looked at."""
    plans = [(draw(seed, 0), draw(seed, 0.5), draw(seed, 1)) for seed in range(100)]
    assert not any(none.transfers for none, _, _ in plans)
    assert all(some in {none, every} for none, some, every in plans)
    assert 0 < sum(some.transfers for _, some, _ in plans) < len(plans)


def test_histories_with_transfers_have_two_groups_of_workers() -> None:
    """Or there would be nowhere to go."""
    assert all(plan.transfers and plan.herds >= 2 for plan in (draw(seed, 1) for seed in range(100)))


def pack_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for."""
    monkeypatch.setattr(transfers, "_is_at_rest", lambda *_: True)


def forget_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other group counts from its own beginning."""
    moved_in = transfers._moved_in
    monkeypatch.setattr(
        transfers, "_moved_in", lambda turn, known, packed: moved_in(turn, known, replace(packed, token=0))
    )


def forget_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other group begins anew under its own names."""
    moved_in = transfers._moved_in
    monkeypatch.setattr(transfers, "_moved_in", lambda *args: replace(moved_in(*args), home=None))


def have_one_home_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later task of a name is to its sink the one that has left."""
    monkeypatch.setattr(transfers, "home_after", lambda task, _: task)


def keep_what_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled transfer leaves a task behind."""
    monkeypatch.setattr(transfers, "_settle", lambda *_: None)


def cancel_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point of no return is none."""
    monkeypatch.setattr(transfers, "GONE", frozenset({TransferStep.DONE}))
    monkeypatch.setattr(transfers, "CANCELLABLE", transfers.CANCELLABLE | {TransferStep.GIVEN})


@pytest.mark.parametrize(
    "break_it",
    [
        pack_what_runs,
        forget_the_token,
        forget_the_home,
        have_one_home_for_all,
        keep_what_has_arrived,
        cancel_what_is_given,
    ],
    ids=lambda each: each.__name__,
)
def test_a_broken_rule_is_found_in_the_histories(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of the same histories that find nothing wrong when nothing is broken."""
    break_it(monkeypatch)
    assert first_fault()


def test_workers_that_would_begin_a_task_anew_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a former version know nothing of homes, and are granted what has one all the same."""
    monkeypatch.setattr(homes, "may_have", lambda *_: True)
    monkeypatch.setattr(homes, "are_known", lambda *_: True)
    assert first_fault(seed for seed in range(100) if draw(seed).former)


def test_a_history_with_transfers_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few actions are left of it, and the fault is the same."""
    keep_what_has_arrived(monkeypatch)
    fault = first_fault()
    assert fault
    told = explain(fault)
    assert " transfer (" in told
    assert told.partition("at the end:")[0].count("\n") < len(fault.plan.actions) // 2
