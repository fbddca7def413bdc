from __future__ import annotations

import pytest

from assignors.base import Member, Task
from assignors.range import RangeAssignor

RANGE = RangeAssignor()
UUID = "-0b5e6a6c-6a4e-4f0e-9d7d-3a1f5a0c9e4"


def _tasks(amount: int, **rest: object) -> list[Task]:
    return [Task(f"t{at}", **rest) for at in range(amount)]  # type: ignore[arg-type]  # whatever a test says


@pytest.mark.parametrize(
    ("members", "amount", "stretches"),
    [
        ("ab", 4, ["t0 t1", "t2 t3"]),
        ("ab", 3, ["t0 t1", "t2"]),
        ("abc", 8, ["t0 t1 t2", "t3 t4 t5", "t6 t7"]),
        ("abc", 2, ["t0", "t1", ""]),
        ("a", 3, ["t0 t1 t2"]),
    ],
)
def test_tasks_are_cut_as_kafka_cuts_partitions(members: str, amount: int, stretches: list[str]) -> None:
    """RangeAssignor's javadoc and tests: one stretch each, the first ones longer by one."""
    assignment = RANGE.assign([Member(each) for each in members], _tasks(amount), {})
    assert [" ".join(names) for names in assignment.values()] == stretches


def test_static_members_come_first_and_keep_their_place_across_restarts() -> None:
    """KIP-345: their order is that of the instance ids; the member id is another one after each restart."""
    before = [Member(f"z{UUID}1"), Member(f"b{UUID}2", "b"), Member(f"a{UUID}3", "a")]
    after = [Member(f"z{UUID}1"), Member(f"b{UUID}0", "b"), Member(f"a{UUID}9", "a")]
    cuts = [list(RANGE.assign(members, _tasks(6), {}).values()) for members in (before, after)]
    assert cuts == [[["t0", "t1"], ["t2", "t3"], ["t4", "t5"]]] * 2
    assert list(RANGE.assign(after, _tasks(6), {})) == [f"a{UUID}9", f"b{UUID}0", f"z{UUID}1"]


def test_each_kind_of_tasks_is_cut_by_itself_and_evens_the_others_out() -> None:
    """Kafka would give the odd one of every topic to the first member."""
    members = [Member(each, labels={"gpu": "yes"} if each != "c" else {}) for each in "abc"]
    tasks = [Task("g0", labels={"gpu": "yes"}), *_tasks(4), Task("p0", worker="b")]
    assert RANGE.assign(members, tasks, {}) == {"a": ["g0", "t0"], "b": ["p0", "t1"], "c": ["t2", "t3"]}
