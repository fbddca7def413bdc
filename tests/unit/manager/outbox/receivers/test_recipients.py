"""Who gets which mail while one of several addresses is refused, told in events and answers."""

from __future__ import annotations

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.recipients import Recipients, Verdict

FULL = Refusal("452 full")
GONE = Refusal("550 no such person", is_final=True)
TO = ("a", "b", "c")


def test_all_go_along_while_all_take_their_mail() -> None:
    """One mail each time; whoever will never take it is left out of this one, and asked with the next."""
    who = Recipients(TO)
    assert who.begin(1) == TO
    assert who.handed(1, TO, {"b": GONE}) == Verdict({}, None, {"b": GONE})
    assert who.begin(2) == TO


def test_one_that_is_refused_for_now_falls_behind_and_the_others_go_on() -> None:
    """It goes along again when it has had all that was begun without it."""
    who = Recipients(TO)
    who.begin(1)
    assert who.handed(1, TO, {"b": FULL}) == Verdict({"b": FULL}, None, {})
    who.fall_behind(["b"])
    assert who.begin(2) == ("a", "c")
    assert [who.has_all(position) for position in (0, 1, 2)] == [False, False, True]
    who.has_had("b", 2)
    who.go_along("b")
    assert (who.begin(2), who.begin(3)) == (("a", "c"), TO)


def test_a_mail_that_is_sent_again_goes_to_those_who_have_not_had_it() -> None:
    """As it could not be stored who is behind, or one that was behind came past it meanwhile."""
    who = Recipients(TO)
    who.begin(1)
    who.handed(1, TO, {"b": FULL})
    assert who.begin(1) == ("b",)
    assert who.handed(1, ("b",), {"b": FULL}) == Verdict({"b": FULL}, None, {})
    who.fall_behind(["b"])
    who.begin(2)
    who.has_had("b", 2)
    who.go_along("b")
    assert who.begin(2) == ("a", "c")


def test_a_mail_that_nobody_gets_is_waited_for_by_all() -> None:
    """For now if one may yet get it, whoever will not."""
    who = Recipients(("a", "b"))
    to = who.begin(1)
    assert who.handed(1, to, {"a": GONE, "b": FULL}).refusal == Refusal("b: 452 full")
    assert who.begin(1) == to
    assert who.handed(1, to, {"a": GONE, "b": GONE}).refusal == Refusal(
        "a, b: 550 no such person", is_final=True
    )


def test_if_all_that_are_left_are_refused_they_fall_behind_too() -> None:
    """Those behind are served alone: nobody waits for another, and the log goes past those who are none."""
    who = Recipients(("a", "b"))
    who.begin(1)
    who.handed(1, ("a", "b"), {"a": FULL})
    who.fall_behind(["a"])
    assert who.begin(2) == ("b",)
    assert who.handed(2, ("b",), {"b": FULL}) == Verdict({"b": FULL}, None, {})
    who.fall_behind(["b"])
    assert who.begin(3) == ()


def test_what_is_stored_is_gone_on_from() -> None:
    """By another manager: one that is behind has all no sooner than it has what the others had."""
    who = Recipients(TO)
    who.resume(7, {"c"})
    assert [who.is_behind(each) for each in TO] == [False, False, True]
    assert (who.has_all(6), who.has_all(7)) == (False, True)
    assert who.begin(8) == ("a", "b")
