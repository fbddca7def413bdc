from __future__ import annotations

import pytest

from worker.membership.states import (
    TRANSITIONS,
    IllegalMemberTransitionError,
    MemberState,
    States,
    Transition,
)


@pytest.mark.parametrize("move", Transition)
@pytest.mark.parametrize("state", MemberState)
def test_only_the_table_s_moves_are_possible(state: MemberState, move: Transition) -> None:
    """Every pair of state and move either follows the table or raises and changes nothing."""
    targets = [target for each, sources, target in TRANSITIONS if each is move and state in sources]
    states = States()
    states.state = state
    if targets:
        states.take(move)
        assert [states.state] == targets
    else:
        with pytest.raises(IllegalMemberTransitionError, match=f"{move.value}.*{state.value}"):
            states.take(move)
        assert states.state is state
