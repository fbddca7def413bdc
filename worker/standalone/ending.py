"""When a run without a manager is over, and how it went. Rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.standalone.manager import LocalTask

AT_REST = {TaskState.COMPLETED, TaskState.FAILED, TaskState.PAUSED, TaskState.STOPPED}
"""What stays as it is unless somebody wants something else, and here nobody can."""


def is_over(tasks: Iterable[LocalTask], states: Mapping[str, TaskState], *, once: bool) -> bool:
    """Whether nothing is left to wait for: with `once` among the bounded tasks, else among all."""
    return all(states.get(task.name) in AT_REST for task in tasks if task.is_bounded or not once)


def has_failed(states: Mapping[str, TaskState]) -> bool:
    """Whether a task needs somebody to look at it."""
    return TaskState.FAILED in states.values()
