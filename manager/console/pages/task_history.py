"""A task's history: what its manager remembers and what the log of events has, as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from protocol.messages.events import EventType
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from protocol.messages.events import Event
    from protocol.messages.history import TaskHistoryLine

TOLD_TWICE: Final = {
    EventType.TASK_FAILED.value: "FAILED",
    EventType.TASK_QUARANTINED.value: "FAILED",
    EventType.TASK_STOPPED.value: "STOPPED",
    EventType.TASK_COMPLETED.value: "COMPLETED",
}
"""Events that are changes of state as well; the log has those from before the manager began to remember."""
SAME_MS: Final = 5000
"""An event's time is put off if that of another one before it was later."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. `state` is None for what is no change of state."""

    at_ms: int
    state: str | None
    what: str
    where: str | None
    headline: str | None
    trace: str | None


def history_of(
    lines: Sequence[TaskHistoryLine], events: Iterable[Event], names: Mapping[str, str]
) -> tuple[Entry, ...]:
    """Both together, the newest first.

    Args:
        lines: what the manager remembers.
        events: those of the task.
        names: what members are called; one that is gone goes by its id.
    """
    entries = [_of_line(line, names) for line in lines]
    entries += [_of_event(event, names) for event in events if not _is_known(event, lines)]
    entries.sort(key=lambda entry: entry.at_ms)
    return tuple(entries[::-1])


def _is_known(event: Event, lines: Sequence[TaskHistoryLine]) -> bool:
    state = TOLD_TWICE.get(event.type)
    return any(line.state == state and abs(line.at_ms - event.at_ms) <= SAME_MS for line in lines)


def _of_line(line: TaskHistoryLine, names: Mapping[str, str]) -> Entry:
    headline, trace = _parts(None if line.state == TaskState.UNASSIGNED.value else line.cause)
    where = None if line.owner is None else names.get(line.owner, line.owner)
    what = f"token {line.token}, generation {line.generation_id}"
    if line.group is not None:
        what += f", in group {line.group} as {line.task}"
    return Entry(line.at_ms, line.state, what, where, headline, trace)


def _of_event(event: Event, names: Mapping[str, str]) -> Entry:
    headline, trace = _parts(event.cause)
    where = None if event.member is None else names.get(event.member, event.member)
    return Entry(event.at_ms, TOLD_TWICE.get(event.type), _what(event), where, headline, trace)


def _what(event: Event) -> str:
    if event.rows is not None:
        return f"{event.type}: {event.rows:,}"
    if event.definition_version is None:
        return event.type
    told = f"target {event.target}, version {event.definition_version}"
    return f"{event.type}: {told}" + (f", restart {event.restart_count}" if event.restart_count else "")


def _parts(cause: str | None) -> tuple[str | None, str | None]:
    headline, _, trace = (cause or "").partition("\n")
    return headline or None, trace or None
