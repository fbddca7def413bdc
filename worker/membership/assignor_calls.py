"""Asking an assignor, which may be wrong, slow, or never come back (architecture §4)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from assignors.checked import validate
from assignors.eligibility import MAX_WHY_LENGTH
from assignors.limits import within_limits
from telemetry.foreign_errors import first_line_of
from worker.threads import in_thread
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from assignors.base import Assignment, Assignor, Member, Task
    from worker.clock import Clock

log = structlog.get_logger(__name__)

MOST_FAULTS: Final = 5
"""Faults that are told one by one; an assignor that has one of a kind may have thousands."""


class UnusableError(Exception):
    """There is nothing from the assignor that could be used; the text is one line that says why."""


class AssignorCalls:
    """Has assignors decide, each in a thread of its own, and takes nothing from them that cannot be used.

    No thread can be ended from outside. So an assignor has at most one at any time: if it is still busy with
    a rebalance that the next one has overtaken, it is waited for, within the same limit. One that has not
    come back within the limit is not asked again until it has, and what it says then is thrown away. So no
    more threads can be lost than there are assignors, however often the group rebalances. They share the
    interpreter with the event loop, and the process ends without waiting for them. (Code that holds the
    interpreter's lock all the while stops the whole worker. The manager then takes it for lost, and whatever
    it still does is fenced.)

    Args:
        assignors: those that may be asked.
        clock: what the limit is measured by.
        limit_s: how long one may take, in seconds.
    """

    def __init__(self, assignors: Iterable[Assignor], clock: Clock, limit_s: float) -> None:
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._clock = clock
        self._limit_s = limit_s
        self._busy: dict[str, asyncio.Future[Any]] = {}
        self._overdue: set[str] = set()

    async def decide(
        self,
        name: str,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],
    ) -> Assignment:
        """What the assignor `name` decides, kept within the members' limits.

        It is given copies: whatever it does to them is its own affair. Where it deals a member too much, it
        is asked again about the rest, within the same time.

        Raises:
            UnusableError: it is unknown, raised, took too long, or returned no assignment of these tasks.
        """
        if name in self._overdue:
            raise UnusableError("it has not come back from an earlier rebalance")
        if (assignor := self._assignors.get(name)) is None:
            raise UnusableError("this worker does not know it")

        def ask(members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
            own = tuple(map(copy, members)), tuple(map(copy, tasks))
            return _checked(assignor.assign(*own, current), members, tasks)

        asking = asyncio.ensure_future(self._ask_in_turn(name, partial(within_limits, ask, members, tasks)))
        if await first(asking, self._clock.sleep(self._limit_s)):
            return asking.result()
        if name in self._busy:
            self._overdue.add(name)
        raise UnusableError(f"it took longer than {self._limit_s:g} s")

    async def _ask_in_turn(self, name: str, work: Callable[[], Assignment]) -> Assignment:
        while (busy := self._busy.get(name)) is not None:
            await asyncio.wait([busy])
        self._busy[name] = answer = asyncio.wrap_future(in_thread("assignor", work))
        answer.add_done_callback(lambda _: self._on_back(name))
        try:
            return await asyncio.shield(answer)
        except UnusableError:
            raise
        except Exception as error:
            log.exception("assignor raised", assignor=name)
            raise UnusableError(first_line_of(error)[:MAX_WHY_LENGTH]) from error

    def _on_back(self, name: str) -> None:
        self._busy.pop(name).exception()  # seen, even if whoever waited has given up
        if name in self._overdue:
            self._overdue.discard(name)
            log.warning("assignor came back too late, its answer is thrown away", assignor=name)


def _checked(result: object, members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
    """A copy of `result` that nobody else can change.

    Raises:
        UnusableError: it cannot be used.
    """
    copy = {key: _copied(value) for key, value in result.items()} if isinstance(result, Mapping) else result
    if faults := validate(copy, members, tasks):
        told = [fault.message[:MAX_WHY_LENGTH] for fault in faults[:MOST_FAULTS]]
        rest = len(faults) - len(told)
        raise UnusableError("; ".join([*told, f"and {rest} more"] if rest else told))
    return copy  # type: ignore[return-value]  # it has just been found to be one


def _copied(value: object) -> object:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
