"""What is read off the groups when somebody asks, and costs nothing until then."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from manager.metrics import catalog
from protocol.states import GroupState
from telemetry.metrics import family

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from manager.core.group import Group
    from manager.core.member import Member
    from telemetry.metrics import Family, Metric


class ObservedRuntime(Protocol):
    """What of a runtime is looked at."""

    @property
    def is_healthy(self) -> bool:
        """Whether the storage does what it is asked to."""
        ...

    @property
    def parked(self) -> int:
        """How many requests wait for their answers."""
        ...

    @property
    def put_off(self) -> int:
        """How many wait for a later pass of the event loop."""
        ...

    def living(self) -> Iterable[Group]:
        """The groups that exist."""
        ...


class GroupReader:
    """Prometheus's collector of everything that has a present value. To be called in the event loop."""

    def __init__(self, runtime: ObservedRuntime) -> None:
        self._runtime = runtime

    def collect(self) -> Iterator[Family]:
        """Every group, one after the other."""
        yield _single(catalog.STORAGE_UP, self._runtime.is_healthy)
        yield _single(catalog.PARKED, self._runtime.parked)
        yield _single(catalog.PUT_OFF, self._runtime.put_off)
        states, generations = family(catalog.GROUP_STATE), family(catalog.GENERATION)
        members, tasks = family(catalog.MEMBERS), family(catalog.TASKS)
        to_come, alarms = family(catalog.TASKS_TO_COME), family(catalog.ALARMS_FIRING)
        transferring, since = family(catalog.TRANSFERRING), family(catalog.TRANSFER_SINCE)
        for group in self._runtime.living():
            states.add_metric((group.name, group.state.value), 1)
            generations.add_metric((group.name,), group.generation)
            _add_counts(members, group, Counter(_member_state(group, m) for m in group.members.values()))
            _add_counts(tasks, group, group.tasks.tally.counts())
            to_come.add_metric((group.name,), sum(group.tasks.to_come.values()))
            _add_counts(alarms, group, Counter(row.severity for row in group.alarms.firing.values()))
            leaving = group.transfers.leaving()
            _add_counts(transferring, group, Counter(row.step.value for row in leaving))
            if leaving:
                since.add_metric((group.name,), min(row.changed_at_ms for row in leaving) / 1000)
        yield from (states, generations, members, tasks, to_come, alarms, transferring, since)


def _single(metric: Metric, value: float) -> Family:
    found = family(metric)
    found.add_metric((), value)
    return found


def _add_counts(found: Family, group: Group, counts: Mapping[str, int]) -> None:
    for state, count in sorted(counts.items()):
        found.add_metric((group.name, state), count)


def _member_state(group: Group, member: Member) -> str:
    if member.id in group.joining or member.parked_sync is not None:
        return "parked"
    if group.state is not GroupState.STABLE:
        return "awaited"
    return "draining" if member.row.draining else "active"
