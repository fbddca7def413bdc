"""What the manager has said of the harmful task, from its creation on. Rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from protocol.messages.tasks import TaskStatus

CAUSE_LENGTH = 160
"""In characters, of each cause on the way; the last one is told as a whole."""


class Told(NamedTuple):
    """A state that it went into, when that was seen, in seconds, and why."""

    at: float
    state: str
    cause: str | None


class Fate:
    """The states in their order."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.cause: str | None = None

    def look(self, at: float, task: TaskStatus | None) -> None:
        """Take in what is said of it at a moment, if it is there."""
        if task is None:
            return
        self.cause = task.cause
        last = self.told[-1] if self.told else None
        if last is None or last.state != task.state:
            self.told.append(Told(at, task.state, task.cause))
        elif last.cause is None and task.cause is not None:
            self.told[-1] = last._replace(cause=task.cause)

    @property
    def state(self) -> str | None:
        """The present one."""
        return self.told[-1].state if self.told else None

    def states_since(self, at: float) -> set[str]:
        """All that it was in from a moment on."""
        before = [each.state for each in self.told if each.at <= at][-1:]
        return {*before, *(each.state for each in self.told if each.at > at)}

    def lines(self, begin: float) -> list[str]:
        """For people; times are seconds after `begin`."""
        return [
            f"{each.at - begin:>7.1f} s  {each.state:<11} {_first_line(each.cause)}".rstrip()
            for each in self.told
        ]


def _first_line(cause: str | None) -> str:
    return (cause or "").partition("\n")[0][:CAUSE_LENGTH]
