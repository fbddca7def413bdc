from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.base import Assignment, Member, Task
from assignors.offers import ALIKE
from assignors.sizes import sizes
from assignors.weighted import WeightedAssignor
from tests.unit.assignors.groups import Group, groups
from tests.unit.assignors.heights import Heights

if TYPE_CHECKING:
    from collections.abc import Sequence

WEIGHTED = WeightedAssignor()
MARGIN = WeightedAssignor.margin
NOISE = MARGIN / (2 - MARGIN)

some_weights = st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0]), max_size=7)


def _members(*capacities: float) -> list[Member]:
    return [Member(f"m{at}", capacity=capacity) for at, capacity in enumerate(capacities)]


def _tasks(*weights: float) -> list[Task]:
    return [Task(f"t{at:03}", weight) for at, weight in enumerate(weights)]


def _moved(before: Assignment, after: Assignment) -> set[str]:
    was = {name: member for member, names in before.items() for name in names}
    return {name for member, names in after.items() for name in names if was.get(name, member) != member}


@settings(max_examples=300)
@given(group=groups(max_members=6, max_tasks=25, choosy=True, unequal=True))
def test_nobody_can_relieve_anybody(group: Group) -> None:
    """Promise 1 of `assignors.weighted`, pins and labels included; no margin for what moves anyway."""
    heights = Heights(group, WEIGHTED.assign(group.members, group.tasks, group.current))
    homes = group.homes()
    for task, giver, taker in heights.possible_moves():
        factor = 1 - MARGIN if homes.get(task) == giver else 1
        assert factor * heights.of(giver) <= heights.of(taker, heights.size[task]) * (1 + 1e-9)


@given(group=groups(max_members=6, max_tasks=25, choosy=False, unequal=True))
def test_nobody_stands_higher_than_the_mean_and_a_small_task(group: Group) -> None:
    """Promise 2: the bound that follows from it when everybody may run everything."""
    heights = Heights(group, WEIGHTED.assign(group.members, group.tasks, group.current))
    for member, names in heights.assignment.items():
        smallest = min((heights.size[name] for name in names), default=0)
        work = sum(heights.size.values()) + (len(group.members) - 1) * smallest
        assert (1 - MARGIN) * heights.of(member) * heights.capacity <= work * (1 + 1e-9)


@settings(max_examples=200)
@given(weights=some_weights, capacities=st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=3))
def test_the_highest_is_within_the_bound_of_the_best_there_is(
    weights: list[float], capacities: list[float]
) -> None:
    """Promises 2 and 3, compared with all assignments there are."""
    members, tasks = _members(*capacities), _tasks(*weights)
    many, equal = len(members), len(set(capacities)) == 1
    highest = Heights.highest_of(members, tasks, WEIGHTED.assign(members, tasks, {}))
    best = min(Heights.highest_of(members, tasks, each) for each in _all_assignments(members, tasks))
    bound = 4 / 3 - 1 / (3 * many) if equal else 1 + (many - 1) * max(capacities) / sum(capacities)
    assert highest <= bound * best * (1 + 1e-9)


def _all_assignments(members: Sequence[Member], tasks: Sequence[Task]) -> list[Assignment]:
    ids = [member.member_id for member in members]
    return [
        {each: [task.name for task, to in zip(tasks, choice, strict=True) if to == each] for each in ids}
        for choice in product(ids, repeat=len(tasks))
    ]


def test_moves_are_nearly_as_few_as_can_be() -> None:
    """Seven groups in eight move as little as any assignment with no higher member; no group much more."""
    chance = Random(4)
    surplus = Counter(_surplus(chance) for _ in range(300))
    assert surplus[0] >= 262
    assert max(surplus) <= 3


def _surplus(chance: Random) -> int:
    """How many tasks more than the fewest move in a group drawn by `chance`."""
    members = _members(*chance.choices([1.0, 1.0, 2.0, 4.0], k=chance.randint(2, 3)))
    tasks = _tasks(*chance.choices([1.0, 2.0, 3.0, 5.0, 8.0], k=chance.randint(1, 6)))
    was = {task.name: chance.choice([None, *members]) for task in tasks}
    current = {each.member_id: [name for name, home in was.items() if home == each] for each in members}
    assignment = WEIGHTED.assign(members, tasks, current)
    limit = Heights.highest_of(members, tasks, assignment) * (1 + 1e-9)
    fewest = min(
        len(_moved(current, each))
        for each in _all_assignments(members, tasks)
        if Heights.highest_of(members, tasks, each) <= limit
    )
    return len(_moved(current, assignment)) - fewest


@settings(max_examples=200)
@given(
    group=groups(max_members=6, max_tasks=25, choosy=True, unequal=True),
    noise=st.lists(st.floats(-0.99 * NOISE, 0.99 * NOISE), min_size=25, max_size=25),
)
def test_noise_moves_nothing(group: Group, noise: list[float]) -> None:
    """Promise 4: once placed, every load may be up to 11 % off, and nothing moves."""
    measured = [replace(task, load=size / 1e6) for task, size in zip(group.tasks, _sizes(group), strict=True)]
    placed = WEIGHTED.assign([replace(member, owned=frozenset()) for member in group.members], measured, {})
    members = group.running(placed).members
    noisy = [
        replace(task, load=(task.load or 0) * (1 + part)) for task, part in zip(measured, noise, strict=False)
    ]
    assert WEIGHTED.assign(members, noisy, {}) == placed


def _sizes(group: Group) -> list[int]:
    found = sizes(group.tasks)
    return [found[task.name] for task in group.tasks]


def test_noise_moves_nothing_after_a_worker_has_joined() -> None:
    """It was given its full share at once: nothing is left that noise could bring over the margin."""
    chance = Random(7)
    members = _members(*[1.0] * 10)
    tasks = [Task(f"t{at:03}", load=chance.uniform(0.01, 0.1)) for at in range(300)]
    joined = [*members, Member("n")]
    present = WEIGHTED.assign(joined, tasks, WEIGHTED.assign(members, tasks, {}))
    assert len(present["n"]) >= 10
    for _ in range(20):
        noisy = [replace(task, load=(task.load or 0) * chance.uniform(0.9, 1.1)) for task in tasks]
        assert WEIGHTED.assign(joined, noisy, present) == present


def test_a_herd_with_little_to_do_is_left_alone() -> None:
    """Loads are reported to two places: what is below 0.01 is nothing or twice as much."""
    chance = Random(1)
    members = _members(*[1.0] * 10)
    loads = {f"t{at}": chance.uniform(0.002, 0.01) for at in range(60)}

    def measured() -> list[Task]:
        noisy = {name: load * chance.uniform(0.9, 1.1) for name, load in loads.items()}
        return [Task(name, load=round(load, 2)) for name, load in noisy.items()]

    placed = WEIGHTED.assign(members, measured(), {})
    for _ in range(20):
        assert WEIGHTED.assign(members, measured(), placed) == placed


@given(
    capacities=st.lists(st.floats(), min_size=1, max_size=4),
    figures=st.lists(st.tuples(st.floats(), st.none() | st.floats()), max_size=8),
)
def test_no_figure_upsets_it(capacities: list[float], figures: list[tuple[float, float | None]]) -> None:
    """They come from other workers, and from whoever wrote a definition."""
    members = _members(*capacities)
    tasks = [Task(f"t{at}", weight, load=load) for at, (weight, load) in enumerate(figures)]
    crowded = {"m0": [task.name for task in tasks]}
    for current in ({}, crowded):
        assignment = WEIGHTED.assign(members, tasks, current)
        assert sorted(name for names in assignment.values() for name in names) == crowded["m0"]


def test_a_lasting_change_of_load_moves_what_it_has_to() -> None:
    """One task turns out to be as heavy as all others: its neighbours go, it stays."""
    tasks = _tasks(*[1.0] * 8)
    placed = {"m0": ["t000", "t001", "t002", "t003"], "m1": ["t004", "t005", "t006", "t007"]}
    heavier = [replace(task, load=0.7 if task.name == "t000" else 0.1) for task in tasks]
    after = WEIGHTED.assign(_members(1, 1), heavier, placed)
    assert after == {"m0": ["t000"], "m1": [f"t00{at}" for at in range(1, 8)]}


def test_a_worker_of_twice_the_capacity_is_given_twice_the_work() -> None:
    """Capacity is a share of the load."""
    assert [len(names) for names in WEIGHTED.assign(_members(1, 2, 3), _tasks(*[1.0] * 60), {}).values()] == [
        10,
        20,
        30,
    ]


def test_only_what_the_new_worker_needs_is_moved_to_it() -> None:
    """The others exchange nothing among themselves."""
    before = WEIGHTED.assign(_members(1, 1, 1), _tasks(*[1.0] * 40), {})
    after = WEIGHTED.assign(_members(1, 1, 1, 1), _tasks(*[1.0] * 40), before)
    assert _moved(before, after) == set(after["m3"])
    assert len(after["m3"]) == 10


def test_a_margin_of_ones_own_is_kept_to() -> None:
    """With none, the smallest gain is worth a move; with a large one, hardly any is."""

    class Keen(WeightedAssignor):
        margin = 0.0

    class Lazy(WeightedAssignor):
        margin = 0.9

    tasks = _tasks(*[1.0] * 18)
    placed = {"m0": [task.name for task in tasks[:10]], "m1": [task.name for task in tasks[10:]]}
    sizes_of = [
        [len(names) for names in assignor.assign(_members(1, 1), tasks, placed).values()]
        for assignor in (Keen(), WEIGHTED, Lazy())
    ]
    assert sizes_of == [[9, 9], [10, 8], [10, 8]]
    assert [len(names) for names in Lazy().assign(_members(1, 1), tasks, {"m0": placed["m0"]}).values()] == [
        10,
        8,
    ]


@pytest.mark.parametrize("capacities", [[1.0], [1.0, 2.0, 4.0], None])
def test_a_large_group_keeps_the_promise(capacities: list[float] | None) -> None:
    """Twenty thousand tasks: from scratch, and after every tenth worker has gone."""
    chance = Random(1)
    drawn = chance.choices(capacities, k=300) if capacities else [chance.uniform(0.5, 8) for _ in range(300)]
    members = [Member(f"m{at:03}", capacity=capacity) for at, capacity in enumerate(drawn)]
    tasks = [Task(f"t{at:05}", chance.paretovariate(1.5)) for at in range(20_000)]
    first = WEIGHTED.assign(members, tasks, {})
    left = [member for at, member in enumerate(members) if at % 10]
    second = WEIGHTED.assign(left, tasks, first)
    for present, assignment, factor in [(members, first, 1.0), (left, second, 1 - MARGIN)]:
        heights = Heights(Group(present, tasks), assignment)
        lowest = min(heights.of(member.member_id) for member in present)
        for member in present:
            smallest = min(heights.size[name] for name in assignment[member.member_id])
            slack = max(ALIKE * smallest / each.capacity for each in present)
            assert factor * heights.of(member.member_id) <= lowest + slack
