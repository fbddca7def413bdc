"""The life of one task's process, as its worker sees it. Rules without I/O.

The process says how far it is; it may also die or fall silent at any moment, and be asked to end at any
moment. Each of these is a method that returns what is to be done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

from worker.isolation.deaths import Death
from worker.isolation.messages import (
    Answer,
    At,
    Ended,
    Lost,
    MayWrite,
    News,
    Refused,
    Started,
    Stop,
    Takes,
    Up,
)
from worker.query_engine import QueryError
from worker.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.resources import WorkerResources
    from worker.isolation.deaths import Exit
    from worker.isolation.messages import OfTask

BEAT_S: Final = 1.0
"""How often each side gives a sign of life, or looks for one."""
_NOBODY: Final = QueryError("nobody has asked for its end")


class State(Enum):
    """How far it is."""

    OPENING = auto()
    STARTING = auto()
    RUNNING = auto()
    OVER = auto()


@dataclass(frozen=True, slots=True)
class Send:
    """Say something to the process."""

    message: Answer | Stop


@dataclass(frozen=True, slots=True)
class Step:
    """Tell whoever waits for the start what that is waiting for."""

    step: str


@dataclass(frozen=True, slots=True)
class IsUp:
    """Spark has come up: another one may be brought up."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The query runs."""

    checkpoint: str | None
    committed: int | None


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing of the query runs any more; `error` is what its end, or its start, comes to."""

    error: QueryError | None


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process and whatever it has begun, at once."""


Effect: TypeAlias = Send | Step | IsUp | Begun | Over | Kill


class Lifecycle:
    """From the process's begin to the end of its query; `state`, `news` and `resources` may be read."""

    def __init__(self, may_write: Callable[[], bool], *, heap: str, silence_limit_s: float) -> None:
        """`may_write` is the worker's lease on itself; `heap` what the JVM may use, as Spark writes it."""
        self.state = State.OPENING
        self.news = News()
        self.resources: WorkerResources | None = None
        self._may_write = may_write
        self._heap = heap
        self._silence_limit_s = silence_limit_s
        self._silence = Silence(silence_limit_s, BEAT_S)
        self._has_spoken = False
        self._silent_s: float | None = None
        self._lost: str | None = None
        self._asked_for: QueryError | None = _NOBODY

    def received(self, message: OfTask) -> list[Effect]:
        """The process says something; whatever that is, it lives."""
        self._has_spoken = True
        self._silence.heard()
        match message:
            case MayWrite(number):
                return [Send(Answer(number, self._may_write()))]
            case News():
                self.news = message
                return []
            case Takes(resources):
                self.resources = resources
                return []
            case At() | Up() | Started():
                return self._comes_further(message)
            case Lost(how):
                self._lost = how
                return [Kill()]
            case Refused(fault) | Ended(fault):
                return self._over(None if fault is None else fault.error)

    def look(self) -> list[Effect]:
        """To be called every `BEAT_S` seconds: one that has been silent for too long is killed.

        Before its first word there is no time that it has to keep; how long a start may take, others say.
        """
        if self.state is State.OVER or not self._has_spoken or not self._silence.look():
            return []
        self._silent_s = self._silence_limit_s
        return [Kill()]

    def stop(self, timeout_s: float, end: QueryError | None = None) -> list[Effect]:
        """Somebody asks for its end, which is told as `end`; the first who asks says how."""
        if self.state is State.OVER:
            return []
        if self._asked_for is _NOBODY:
            self._asked_for = end
        return [Send(Stop(timeout_s))]

    def exited(self, end: Exit) -> list[Effect]:
        """The process is gone, and with it whatever it had begun."""
        if self.state is State.OVER:
            return []
        return self._over(QueryError(Death(end, self._lost, self._silent_s, self._heap).cause))

    def _comes_further(self, message: At | Up | Started) -> list[Effect]:
        """A query that is to end before it runs has not begun: whoever waits for that hears of the end."""
        match message:
            case At(step):
                return [Step(step)]
            case Up():
                self.state = State.STARTING
                return [IsUp()]
            case Started(checkpoint, committed):
                self.state = State.RUNNING
                return [Begun(checkpoint, committed)] if self._asked_for is _NOBODY else []

    def _over(self, error: QueryError | None) -> list[Effect]:
        """An end that was asked for is told as such, whatever came of it meanwhile."""
        if self.state is State.OVER:
            return []
        self.state = State.OVER
        return [Over(error if self._asked_for is _NOBODY else self._asked_for)]
