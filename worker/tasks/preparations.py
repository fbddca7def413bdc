"""Making ready what is pending, so that less is left to do when it is granted (protocol §5, Claim).

What that comes to is the engine's. None of it is relied upon: a start does without what is not there, and
says itself what is wrong with the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import structlog

from definition.document import DefinitionError, parse_definition
from protocol.states import Target
from telemetry.cause_ids import new_cause_id
from worker.query_engine import QueryError, UpcomingQuery

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable
    from collections.abc import Set as AbstractSet

    from protocol.messages.ownership import PendingTask
    from protocol.messages.tasks import TaskHome, TaskReset
    from worker.query_engine import Prepared, QueryEngine
    from worker.tasks.grants import Grant

log = structlog.get_logger(__name__)

Value = TypeVar("Value")


class Offer(NamedTuple):
    """What is told of a pending task: its definition, its last reset, and the names it is known by."""

    document: bytes
    reset: TaskReset | None
    home: TaskHome | None

    @classmethod
    def of(cls, pending: PendingTask) -> Offer:
        """Of one that is told with its definition."""
        return cls(bytes(_given(pending.definition) or b""), _given(pending.reset), _given(pending.home))


@dataclass(frozen=True, slots=True)
class Preparation:
    """One task's: of which offer, and what comes of it; None if nothing does."""

    offer: Offer
    making: asyncio.Task[Prepared | None]

    @property
    def made(self) -> Prepared | None:
        """What the engine has begun to make ready, if that is known yet."""
        is_there = self.making.done() and not self.making.cancelled()
        return self.making.result() if is_there else None

    def discard(self) -> None:
        """Nobody wants it, be it there or not."""
        self.making.cancel()
        self.making.add_done_callback(lambda _: self._let_go())

    def _let_go(self) -> None:
        if (made := self.made) is not None:
            made.discard()


class Preparations:
    """Those of one worker; the manager says of which tasks, and no more of them than the engine can have.

    Args:
        engine: what makes ready.
        group: whose tasks they are.
        spawn: runs a coroutine in the background.
    """

    def __init__(
        self,
        engine: QueryEngine,
        group: str,
        spawn: Callable[[Coroutine[Any, Any, Prepared | None]], asyncio.Task[Prepared | None]],
    ) -> None:
        self._engine = engine
        self._group = group
        self._spawn = spawn
        self._all: dict[str, Preparation] = {}

    def offered(self, pending: Iterable[PendingTask]) -> None:
        """The latest answer: prepare what it has definitions of, and nothing else any more."""
        told = {each.task: Offer.of(each) for each in pending if each.definition is not msgspec.UNSET}
        self.keep(frozenset(task for task, offer in told.items() if self._is_prepared(task, offer)))
        for task, offer in told.items():
            if task not in self._all:
                self._all[task] = Preparation(offer, self._spawn(self._make(task, offer)))

    def keep(self, tasks: AbstractSet[str]) -> None:
        """Discard what is made ready for others than these."""
        for task in self._all.keys() - tasks:
            self._all.pop(task).discard()

    def take(self, grant: Grant) -> Prepared | None:
        """What was made ready for it, to be used or discarded; what does not fit the grant is discarded."""
        preparation = self._all.pop(grant.task, None)
        if preparation is None:
            return None
        is_same = preparation.offer == Offer(grant.document, grant.reset, grant.home)
        if not is_same or grant.target is not Target.RUNNING or preparation.made is None:
            preparation.discard()
            return None
        return preparation.made

    def _is_prepared(self, task: str, offer: Offer) -> bool:
        """Whether it is, or soon will be; what has come to nothing, or is stale, is tried again."""
        known = self._all.get(task)
        if known is None or known.offer != offer:
            return False
        made = known.made
        return not known.making.done() if made is None else not made.is_stale

    async def _make(self, task: str, offer: Offer) -> Prepared | None:
        try:
            definition = parse_definition(offer.document)
            upcoming = UpcomingQuery(self._group, task, definition, offer.reset, offer.home)
            return await self._engine.prepare(upcoming)
        except (DefinitionError, QueryError) as error:
            log.debug("a task could not be made ready", task=task, why=str(error).partition("\n")[0])
        except Exception:  # the start of the task does without
            log.exception("bug: a task could not be made ready", task=task, cause_id=new_cause_id())
        return None


def _given(value: Value | msgspec.UnsetType) -> Value | None:
    """None for what is left out."""
    return None if value is msgspec.UNSET else value
