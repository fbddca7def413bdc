from __future__ import annotations

import pytest

from worker.membership.states import MOVES, IllegalMoveError, MemberState, Move, States


@pytest.mark.parametrize("move", Move)
@pytest.mark.parametrize("state", MemberState)
def test_only_the_table_s_moves_are_possible(state: MemberState, move: Move) -> None:
    """Every pair of state and move either follows the table or raises and changes nothing."""
    targets = [target for each, sources, target in MOVES if each is move and state in sources]
    states = States()
    states.state = state
    if targets:
        states.take(move)
        assert [states.state] == targets
    else:
        with pytest.raises(IllegalMoveError, match=f"{move.value}.*{state.value}"):
            states.take(move)
        assert states.state is state
