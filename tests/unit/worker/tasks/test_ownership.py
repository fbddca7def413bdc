from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from worker.tasks.ownership import plan_round

TASKS = st.frozensets(st.sampled_from("abcdefgh"))


@given(assigned=TASKS, held=TASKS, leaving=TASKS)
def test_a_round_touches_only_what_moves(
    assigned: frozenset[str], held: frozenset[str], leaving: frozenset[str]
) -> None:
    """What is assigned and held is never left; what is held elsewhere goes; what goes is not claimed."""
    leaving &= held
    round_ = plan_round(assigned, held, leaving)
    assert round_.leave.isdisjoint(assigned)
    assert held - assigned == round_.leave | (leaving - assigned)
    assert round_.claim == assigned - leaving


def test_nothing_is_left_twice() -> None:
    """A task on its way out is not told again."""
    assert plan_round({"a"}, {"a", "b"}, {"b"}).leave == frozenset()
