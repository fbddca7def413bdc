from __future__ import annotations

from worker.membership.asking_for_more import MORE, AskingForMore

ONE, TWO = frozenset({"a"}), frozenset({"a", "b"})


def test_there_is_nothing_to_ask_for_unless_more_is_to_come() -> None:
    """The usual assignment is all there is."""
    assert AskingForMore(lambda: 0.5).given(ONE, is_more_to_come=False) is None


def test_pauses_grow_while_asking_brings_nothing_new() -> None:
    """To a minute; what a member had before is no news, and a task that is new is asked after at once."""
    asking = AskingForMore(lambda: 0.5)
    assert asking.given(ONE, is_more_to_come=True) == MORE.first_s
    pauses = []
    for _ in range(8):
        asking.ask()
        pauses.append(asking.given(ONE, is_more_to_come=True))
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    assert asking.given(TWO, is_more_to_come=True) == MORE.first_s


def test_an_assignment_that_nobody_here_asked_for_is_no_disappointment() -> None:
    """Others ask, too, and the member may start its tasks still."""
    asking = AskingForMore(lambda: 0.5)
    for _ in range(3):
        assert asking.given(ONE, is_more_to_come=True) == MORE.first_s


def test_the_end_of_what_was_to_come_is_a_new_beginning() -> None:
    """The next time asking begins as if there had been no other."""
    asking = AskingForMore(lambda: 0.5)
    for is_more_to_come in (True, True, False):
        asking.ask()
        asking.given(ONE, is_more_to_come=is_more_to_come)
    assert asking.given(ONE, is_more_to_come=True) == MORE.first_s
