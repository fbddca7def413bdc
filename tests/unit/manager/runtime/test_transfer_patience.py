from __future__ import annotations

import pytest

from manager.runtime.transfer_patience import FIRST_S, LONGEST_S, TransferPatience


def told(patience: TransferPatience, standings: dict[str, str], *times: float) -> list[list[str]]:
    """Look at each of these times; whatever is due is carried."""
    found = []
    for now in times:
        due = patience.due(standings, now)
        for transfer in due:
            patience.carried(transfer, standings[transfer], now)
        found.append(due)
    return found


def test_what_stands_still_is_told_ever_more_rarely() -> None:
    """Twice as long after each time, and never longer than the longest pause."""
    patience, now, pauses = TransferPatience(), 0.0, []
    for _ in range(12):
        assert told(patience, {"x": "STOPPING"}, now) == [["x"]]
        pause = patience.rest_s(now, 0, 100)
        assert told(patience, {"x": "STOPPING"}, now + 0.99 * pause) == [[]]
        pauses.append(pause)
        now += pause * 1.001
    assert pauses[:4] == pytest.approx([FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S])
    assert pauses[-1] == pytest.approx(LONGEST_S)


def test_what_has_changed_is_told_at_once() -> None:
    """However long it has waited, and the pauses begin anew; others wait on."""
    patience = TransferPatience()
    told(patience, {"x": "STOPPING", "y": "STOPPING"}, 0, 1, 3, 7)
    assert told(patience, {"x": "STOPPED", "y": "STOPPING"}, 7.01, 7.02, 7.12) == [["x"], [], ["x"]]


def test_what_is_over_is_forgotten() -> None:
    """One that comes again under its id is a new one."""
    patience = TransferPatience()
    told(patience, {"x": "STOPPING"}, 0, 1, 3)
    told(patience, {}, 3.1)
    assert patience.rest_s(3.1, 0, 100) == 100
    assert told(patience, {"x": "STOPPING"}, 3.2) == [["x"]]


@pytest.mark.parametrize(("now", "rest"), [(0.0, 0.1), (0.05, 0.05), (0.099, 0.02), (7.0, 0.02)])
def test_the_rest_ends_when_the_first_is_due(now: float, rest: float) -> None:
    """Within its bounds, though it should have ended before."""
    patience = TransferPatience()
    patience.carried("x", "STOPPING", 0.0)
    patience.carried("y", "STOPPING", 50.0)
    assert patience.rest_s(now, 0.02, 1.0) == pytest.approx(rest)
