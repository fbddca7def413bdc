"""What may be counted from one look to the next."""

from __future__ import annotations

from worker.looks import LONGEST_LOOK_S, Looks, Passed


def test_no_look_counts_for_more_than_so_much() -> None:
    """The rest was seen by nobody."""
    looks = Looks()
    assert looks.look(100) == Passed(0, 0)
    assert looks.look(101) == Passed(1, 0)
    assert looks.look(101 + LONGEST_LOOK_S) == Passed(LONGEST_LOOK_S, 0)
    assert looks.look(3701 + LONGEST_LOOK_S) == Passed(LONGEST_LOOK_S, 3600 - LONGEST_LOOK_S)
