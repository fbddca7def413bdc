"""What is known of a task or a worker at one moment, as far as alarms look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.lag import TaskLag
    from protocol.messages.resources import WorkerResources
    from protocol.states import Target, TaskState


class Reading(NamedTuple):
    """What a condition looks at, in the unit of its kind; a `value` of None is not known.

    `since_ms` (since 1970) is when it became so, where that outlives the manager that has seen it. One that
    is `at_least` may be more: not all of the time it is about has been seen, as after a takeover.
    """

    value: float | None
    since_ms: int | None = None
    at_least: bool = False


UNKNOWN = Reading(None)
CLEAR = Reading(0.0)


class Restarts(NamedTuple):
    """How often a task was restarted; `is_all` unless there may have been more before anybody counted."""

    times: int
    is_all: bool


class TaskFacts(NamedTuple):
    """A task as it stands; `state_since_ms` is since 1970, `metrics` are those of its last report.

    `restarts` counts those within a window, in milliseconds. It is asked only by rules of that kind.
    """

    target: Target
    state: TaskState
    state_since_ms: int
    owner: str | None
    token: int
    is_quarantined: bool
    batch_id: int | None
    metrics: dict[str, Any] | None
    lag: TaskLag | None
    restarts: Callable[[int], Restarts]


class WorkerFacts(NamedTuple):
    """A worker as it stands; `load` is that of all its tasks together, None if nobody has told one."""

    load: float | None
    tasks: int
    capacity: float
    resources: WorkerResources | None
