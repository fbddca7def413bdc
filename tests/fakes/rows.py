"""What of a group in memory is to be in storage, for tests that compare the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core.task_tally import Standing, TaskTally
from protocol.task_metrics import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.group import Group
    from manager.core.stored_rows import Row


def rows_of(group: Group) -> Iterator[Row]:
    """The durable part, a row at a time."""
    yield group.header
    yield from (member.stored for member in group.members.values() if member.stored is not None)
    yield from group.offsets.values()
    yield from group.tasks.definitions.values()
    yield from group.tasks.ownership.values()
    yield from group.rebalances
    yield from group.transfers.rows()
    yield from group.alarms.firing.values()
    yield from group.alarms.past.values()


def durable(group: Group) -> dict[tuple[Any, ...], Any]:
    """The durable part by table and key, with what is opaque as it came."""
    return {
        (type(row).__name__, *row.key): msgspec.to_builtins(row, builtin_types=(msgspec.Raw,))
        for row in rows_of(group)
    }


def tally_of(group: Group) -> TaskTally:
    """The sums of the group's tasks, counted anew."""
    tally, registry = TaskTally(), group.tasks
    for task in registry.definitions:
        row, progress = registry.ownership_of(group.name, task), registry.progress.get(task)
        load = figure(progress.metrics, "load") if progress is not None else None
        tally.add(task, Standing(row.owner, row.state.value, load))
    return tally
