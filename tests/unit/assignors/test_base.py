from __future__ import annotations

from assignors.base import Member, holders


def test_who_runs_a_task_has_it_whatever_was_assigned() -> None:
    """What a member says it owns outweighs the last assignment, which covers the rest."""
    members = [Member("a", owned=frozenset({"t"})), Member("b")]
    assert holders(members, {"b": ["t", "u"]}) == {"t": "a", "u": "b"}


def test_of_two_that_say_they_run_a_task_the_assigned_one_has_it() -> None:
    """The other is a zombie."""
    members = [Member(each, owned=frozenset({"t"})) for each in ("a", "b")]
    assert holders(members, {"b": ["t"]}) == {"t": "b"}
    assert holders(members, {}) == {"t": "a"}


def test_members_that_are_gone_have_nothing() -> None:
    """Their tasks can be placed anywhere at no cost."""
    assert holders([Member("a")], {"gone": ["t"]}) == {}
