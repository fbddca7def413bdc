"""Every order of what can happen to a transfer; `python -m tests.simulation.transfers 20` tries more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from manager.core.tasks import transfers
from protocol.states import TransferStep
from tests.simulation.transfer_walks import walk_all
from tests.simulation.transfers import ViolatedError, enumerate_histories

if TYPE_CHECKING:
    from collections.abc import Callable

DEEP = 12
"""Enough for a transfer to come to its end, with something between."""
WALKS = 40


def test_whatever_happens_in_whatever_order_one_group_has_the_task() -> None:
    """Under a token above all that the sink has seen; and each history can still come to its end."""
    found = enumerate_histories(DEEP)
    assert found["states"] > 300
    assert found["events"] > 2500


def cancel_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point of no return is none."""
    monkeypatch.setattr(transfers, "GONE", frozenset({TransferStep.DONE}))
    monkeypatch.setattr(transfers, "CANCELLABLE", transfers.CANCELLABLE | {TransferStep.GIVEN})


def keep_what_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled transfer leaves a task behind."""
    monkeypatch.setattr(transfers, "_settle", lambda *_: None)


def forget_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other group counts from its own beginning."""
    moved_in = transfers._moved_in
    monkeypatch.setattr(transfers, "_moved_in", lambda *args: replace(moved_in(*args), token=1))


def have_one_home_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later task of a name is to its sink the one that has left."""
    monkeypatch.setattr(transfers, "home_after", lambda task, _: task)


@pytest.mark.parametrize(
    "break_it",
    [cancel_what_is_given, keep_what_has_arrived, forget_the_token],
    ids=lambda each: each.__name__,
)
def test_a_broken_rule_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the enumeration is for: each rule that it looks at, left out."""
    break_it(monkeypatch)
    with pytest.raises(ViolatedError):
        enumerate_histories(DEEP)


def test_tasks_go_to_and_fro_while_managers_die() -> None:
    """Several, among three groups, under other names: none is lost, doubled, or run under an old token."""
    figures = walk_all(range(WALKS))
    assert min(figures[step.value] for step in TransferStep) > 20
    assert figures["ran"] > 50


@pytest.mark.parametrize(
    "break_it",
    [cancel_what_is_given, keep_what_has_arrived, forget_the_token, have_one_home_for_all],
    ids=lambda each: each.__name__,
)
def test_a_broken_rule_is_found_on_the_way(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of the same walks, or by what the benches look at after every step."""
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        walk_all(range(WALKS))
