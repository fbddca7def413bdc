"""What is wanted of a task at the moment, and whether what is done for it is still that (protocol §5)."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.tasks.grants import Grant


class Outcome(Enum):
    """How a life ended."""

    LEFT = auto()
    """Stopped in order because the task moves away: its token is to be released."""
    STOPPED = auto()
    """Its target is STOPPED, and the manager knows that it is."""
    COMPLETED = auto()
    """A bounded query came to its end, and the manager knows."""
    CUT = auto()
    """The token is lost: nothing of it runs any more, and nothing is to be said about it."""


class DesiredState:
    """The latest grant of a task, or the end that its life is to come to; `changed` is notified of each.

    Args:
        grant: the first one.
        now: the worker's clock, in seconds.
    """

    def __init__(self, grant: Grant, now: Callable[[], float]) -> None:
        self.grant = grant
        self.since = now()
        self.ending: Outcome | None = None
        self.changed = ChangeSignal()
        self._now = now
        self._acted_on: Grant | None = None
        self._has_next_owner = True

    @property
    def is_leaving(self) -> bool:
        """Whether the task is on its way out."""
        return self.ending is not None

    @property
    def is_fenced(self) -> bool:
        """Whether it does no harm beside another owner: neither what runs by now, nor what is to run next."""
        return self.grant.is_fenced and (self._acted_on is None or self._acted_on.is_fenced)

    def follow(self, grant: Grant) -> None:
        """Want what `grant` asks for, if that is anything new and no answer to an overtaken claim.

        `since` is when its target was first asked for, in seconds.
        """
        if grant.token == self.grant.token and not grant.is_older(self.grant):
            if grant.target is not self.grant.target:
                self.since = self._now()
            self.grant = grant
            self.changed.notify()

    def leave(self, *, for_next_owner: bool = True) -> None:
        """Want an end in order: the batch in flight may finish. Said again, it may take the next owner away.

        Args:
            for_next_owner: whether somebody else may be given the task before its life here is over.
        """
        self.ending = self.ending or Outcome.LEFT
        self._has_next_owner = self._has_next_owner and for_next_owner
        self.changed.notify()

    def cut(self) -> None:
        """Want an end at once."""
        self.ending = Outcome.CUT
        self.changed.notify()

    def act(self) -> bool:
        """The present grant is acted on from now on; whether it asks for anything new."""
        before, self._acted_on = self._acted_on, self.grant
        return before is not None and is_outdated(before, self.grant)

    def is_outdated(self) -> bool:
        """Whether something else is wanted than what is acted on."""
        return self.is_leaving or (self._acted_on is not None and is_outdated(self._acted_on, self.grant))

    def is_moving(self) -> bool:
        """Whether the end is to come because the task moves away, to somebody who may take its query over."""
        return self.ending is Outcome.LEFT and self._has_next_owner

    def is_cut(self) -> bool:
        """Whether the end is to come at once."""
        return self.ending is Outcome.CUT

    async def until_outdated(self) -> None:
        """Wait until something else is wanted."""
        await self.changed.until(self.is_outdated)

    async def until_later(self) -> None:
        """Wait until something else is wanted, or the same is told as of another revision."""
        known = self.grant.revision
        await self.changed.until(lambda: self.is_outdated() or self.grant.revision != known)


def is_outdated(acted_on: Grant, wanted: Grant) -> bool:
    """Whether what is done because of one grant is not what another of the same token asks for.

    Another target or restart count, or a definition that differs in effect: stop, start afresh. What differs
    in nothing but weight, pin, labels or restart policy runs on. One that could not be used for its target,
    and can be now, is another one, too.
    """
    if (acted_on.target, acted_on.restart_count) != (wanted.target, wanted.restart_count):
        return True
    return not _runs_like(acted_on, wanted)


def _runs_like(acted_on: Grant, wanted: Grant) -> bool:
    if acted_on.definition is None or wanted.definition is None:
        return acted_on.document == wanted.document and acted_on.fault == wanted.fault
    if acted_on.document == wanted.document:
        return True
    return acted_on.definition.runs_like(wanted.definition)
