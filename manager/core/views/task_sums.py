"""Tasks as the console shows any number of them: counts, a page in order of trouble, costs at an owner."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from manager.core import checks
from manager.core.commands import OwnerCounts, RankedTasks, TaskCost, TaskCostList, TaskCounts
from manager.core.views.tasks import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manager.core.commands import CountTasks, ListCosts, RankTasks
    from manager.core.member import Parked
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn

    Part = tuple[int, Iterable[str]]


def count(turn: Turn, _: CountTasks, parked: Parked) -> None:
    """Answer with the sums that are kept."""
    checks.known(turn.group)
    tally = turn.group.tasks.tally
    owners = {
        owner: OwnerCounts(+of_owner.states, of_owner.load)
        for owner, of_owner in tally.by_owner.items()
        if owner is not None
    }
    turn.answer(parked, TaskCounts(states=tally.counts(), owners=owners))


def rank(turn: Turn, request: RankTasks, parked: Parked) -> None:
    """Answer with a page; only those that are on it are looked at one by one, unless names are searched."""
    checks.known(turn.group)
    parts = [*_parts(turn.group.tasks, request)]
    total = sum(size for size, _ in parts)
    page = min(max(request.page, 1), max(-(-total // request.limit), 1))
    names = _window(parts, (page - 1) * request.limit, request.limit)
    views = tuple(listed(turn, name) for name in names)
    turn.answer(parked, RankedTasks(tasks=views, page=page, total=total))


def list_costs(turn: Turn, request: ListCosts, parked: Parked) -> None:
    """Answer with the tasks of one member."""
    checks.known(turn.group)
    registry = turn.group.tasks
    costs = tuple(_cost(registry, task) for task in registry.owned_by(request.owner))
    turn.answer(parked, TaskCostList(tasks=costs))


def _cost(registry: TaskRegistry, task: str) -> TaskCost:
    progress = registry.progress.get(task)
    metrics = progress.metrics if progress is not None else None
    return TaskCost(task, registry.ownership[task].state.value, metrics)


def _parts(registry: TaskRegistry, request: RankTasks) -> Iterator[Part]:
    """How many tasks of each state are looked for, and which, by name."""
    if not request.name_has:
        for state in request.states:
            yield len(registry.tally.in_state(state)), _by_name(registry, state)
        return
    part = request.name_has.lower()
    alike = [name for name in registry.names if part in name.lower()]
    for state in request.states:
        found = registry.tally.in_state(state)
        names = [name for name in alike if name in found] if found else []
        yield len(names), names


def _by_name(registry: TaskRegistry, state: str) -> Iterable[str]:
    """Many are picked from all names, as far as they are asked for; few are put in order."""
    found = registry.tally.in_state(state)
    if registry.tally.is_few(state, len(registry.names)):
        return sorted(found)
    return (name for name in registry.names if name in found)


def _window(parts: Iterable[Part], begin: int, length: int) -> list[str]:
    """Those from `begin` on, across all parts."""
    window: list[str] = []
    for size, names in parts:
        if begin < size:
            window.extend(islice(names, begin, begin + length - len(window)))
        begin = max(begin - size, 0)
    return window
