from __future__ import annotations

from types import MappingProxyType

from assignors.base import Member, Task
from assignors.isolation import isolate
from assignors.registry import load_assignor


def member(name: str, *owned: str, **labels: str) -> Member:
    """A worker that owns some tasks."""
    return Member(name, labels=MappingProxyType(labels), owned=frozenset(owned))


def task(name: str, worker: str | None = None, **labels: str) -> Task:
    """A task that may be pinned or ask for labels."""
    return Task(name, worker=worker, labels=MappingProxyType(labels))


ABC = tuple(task(name) for name in "abc")


def test_suspects_get_the_member_with_the_least_to_move_away() -> None:
    """All of them the same one; the assignor deals the others to the others."""
    plan = isolate([member("x", "c"), member("y")], ABC, {"a", "b"})
    assert plan.reserved == {"y": ["a", "b"]}
    assert [each.member_id for each in plan.members] == ["x"]
    assert [each.name for each in plan.tasks] == ["c"]
    assert plan.complete({"x": ["c"]}) == {"x": ["c"], "y": ["a", "b"]}


def test_a_suspect_that_is_on_probation_is_not_moved() -> None:
    """The member it is on stays the reserved one, whatever else is on it."""
    plan = isolate([member("x", "a", "b"), member("y")], ABC, {"a"})
    assert plan.reserved == {"x": ["a"]}


def test_nothing_is_reserved_without_need_or_without_choice() -> None:
    """No suspects, one member, or suspects that may run nowhere: the assignor deals it all to everybody."""
    two, picky = [member("x"), member("y")], (*ABC, task("p", zone="north"))
    for members, tasks, suspects in [(two, ABC, set()), (two[:1], ABC, {"a"}), (two, picky, {"p"})]:
        plan = isolate(members, tasks, suspects)
        assert (plan.members, plan.tasks, plan.reserved) == (members, tasks, {})
        assert plan.complete({"x": ["a"]}) == {"x": ["a"]}


def test_a_pin_to_the_reserved_member_is_not_void() -> None:
    """Who may run nowhere, for it lacks the labels, is dealt to nobody: the assignor sees no such member."""
    members = [member("x"), member("y", gpu="yes")]
    tasks = [task("picky", worker="x", gpu="yes"), task("poison", worker="x"), task("a")]
    plan = isolate(members, tasks, {"poison"})
    dealt = plan.complete(load_assignor("sticky").assign(plan.members, plan.tasks, {}))
    assert dealt == {"x": ["poison"], "y": ["a"]}


def test_pins_and_labels_hold() -> None:
    """Who may run nowhere else stays on the reserved member; a suspect that may not run there is dealt."""
    members = [member("x", "c", zone="north"), member("y")]
    tasks = (task("a"), task("b"), task("c", worker="y"), task("d", zone="north"))
    plan = isolate(members, tasks, {"a", "d"})
    assert plan.reserved == {"x": ["a", "d"]}
    assert [each.name for each in plan.tasks] == ["b", "c"]
    plan = isolate(members, tasks, {"c", "d"})
    assert plan.reserved == {"y": ["c"]}
    assert [each.name for each in plan.tasks] == ["a", "b", "d"]
    plan = isolate(members, (*tasks, task("e", worker="x")), {"a"})
    assert plan.reserved == {"y": ["a", "c"]}
