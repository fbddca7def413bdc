from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from worker.tasks.ownership import Ownership, assignment_delta

TASKS = st.frozensets(st.sampled_from("abcdefgh"))


@given(assigned=TASKS, held=TASKS, leaving=TASKS)
def test_a_new_assignment_touches_only_what_moves(
    assigned: frozenset[str], held: frozenset[str], leaving: frozenset[str]
) -> None:
    """What is assigned and held is never left; what is held elsewhere goes; what goes is not claimed."""
    leaving &= held
    delta = assignment_delta(assigned, held, leaving)
    assert delta.leave.isdisjoint(assigned)
    assert held - assigned == delta.leave | (leaving - assigned)
    assert delta.claim == assigned - leaving


def test_nothing_is_left_twice() -> None:
    """A task on its way out is not told again."""
    assert assignment_delta({"a"}, {"a", "b"}, {"b"}).leave == frozenset()


def a_life(token: int) -> Any:
    """As far as ownership asks: the task, the token, and whether it was told to end at once."""
    return SimpleNamespace(task="t", token=token, desired=SimpleNamespace(cut=lambda: None))


def test_a_release_of_an_earlier_token_leaves_the_task_owned() -> None:
    """Its answer came late: the task was granted again under a higher token meanwhile."""
    ownership, later = Ownership(), a_life(2)
    ownership.begun(later)
    ownership.released("t", 1)
    assert ownership.get("t") is later


def test_the_end_of_an_earlier_life_leaves_the_task_owned() -> None:
    """Else nobody would ever stop or release what the later one runs."""
    ownership, earlier, later = Ownership(), a_life(1), a_life(2)
    ownership.begun(earlier)
    ownership.begun(later)
    ownership.cut(earlier)
    assert ownership.get("t") is later
