"""One query of a task, from its start to its end, whoever brings that about."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from protocol.states import TaskState
from telemetry.cause_ids import new_cause_id
from worker.query_engine import QueryError
from worker.tasks.limits import End, Exceeded, LimitsWatch, Tell
from worker.tasks.settling import UNWANTED, failed
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable

    from definition.limits import Limits
    from worker.clock import Clock
    from worker.query_engine import Prepared, Query, QueryEngine, QuerySpec
    from worker.tasks.desired_state import DesiredState
    from worker.tasks.task_status import TaskStatus

log = structlog.get_logger(__name__)

SLOW_START_S: Final = 10.0
"""After so long a start's state says what it is waiting for."""
HEIR_S: Final = 10.0
"""How long a query that is left running waits for its next owner, who takes a second or two as a rule."""
LOOK_S: Final = 1.0
"""From one look at the limits of a query to the next."""


class QueryRun:
    """Starts a query, and stops it when something else is wanted.

    Args:
        spec: what to run.
        engine: what runs it.
        clock: for what is told of a slow start.
        desired: what is wanted of the task meanwhile.
        status: is told how it goes.
        stop_timeout_s: how long the batch in flight may take when the query is stopped in order, in seconds.
        left: is called when the task moves away and its query runs on, for the next owner to take it over.
    """

    def __init__(
        self,
        spec: QuerySpec,
        engine: QueryEngine,
        clock: Clock,
        *,
        desired: DesiredState,
        status: TaskStatus,
        stop_timeout_s: float,
        left: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._engine = engine
        self._clock = clock
        self._desired = desired
        self._status = status
        self._stop_timeout_s = stop_timeout_s
        self._left = left
        self._step = "its turn"

    async def start(self, prepared: Prepared | None = None) -> Query | QueryError:
        """The query, or why there is none; `UNWANTED` if something else is wanted before it is there.

        `prepared` is what was made ready for it.
        """
        starting = asyncio.ensure_future(self._engine.start(self._spec, self._come_to, prepared))
        telling = asyncio.ensure_future(self._tell_of_waiting())
        try:
            if not await first(asyncio.wait({starting}), self._desired.until_outdated()):
                await self._give_up(starting)
                return UNWANTED
            return starting.result()
        except Exception as error:  # noqa: BLE001 - a plug-in's or Spark's surprise harms this task only
            return failed(error, self._spec, "at its start")
        finally:
            starting.cancel()
            telling.cancel()

    async def watch(self, query: Query) -> QueryError | None:
        """Until nothing of it runs any more.

        Returns:
            Why it failed, `UNWANTED` if it was stopped because something else is wanted; None if a bounded
            query has come to its end.
        """
        ended = asyncio.ensure_future(query.ended())
        ends: list[asyncio.Future[Any]] = [ended]
        if (limits := self._spec.definition.limits) is not None:
            ends.append(asyncio.ensure_future(self._until_beyond(query, limits)))
        try:
            over = asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not await first(over, self._desired.until_outdated()):
                if not await self._is_taken_over(query):
                    await self._stop(query, self._stop_timeout_s)
                return UNWANTED
            if ended.done():
                return ended.result()
            end: End = ends[1].result()
            await self._stop(query, 0.0 if end.at_once else self._stop_timeout_s)
            return QueryError(end.cause, quarantine=end.action == "quarantine", again=not end.has_kept)
        finally:
            for each in ends:
                each.cancel()

    async def _until_beyond(self, query: Query, limits: Limits) -> End:
        """Watch the limits of its definition until one says that the query is to end."""
        watch = LimitsWatch(limits)
        while True:
            await self._clock.sleep(LOOK_S)
            effects = watch.look(
                query.progress(),
                query.stall,
                query.heap_bytes,
                is_at_work=query.is_at_work,
                now=self._clock.now(),
            )
            for effect in effects:
                match effect:
                    case Exceeded(name):
                        self._status.count_exceeded(name)
                    case Tell(cause):
                        self._status.tell_beyond(cause)
                    case End():
                        return effect

    async def _is_taken_over(self, query: Query) -> bool:
        """Where the task moves away, and its query need not be stopped for that.

        A cut ends the wait, and so does the news that there is no next owner to wait for.
        """
        if not (self._desired.is_moving() and query.can_be_left):
            return False
        self._left()
        leaving = asyncio.ensure_future(query.leave(HEIR_S))
        await first(asyncio.wait({leaving}), self._desired.changed.until(self._is_not_moving))
        leaving.cancel()
        await asyncio.wait({leaving})
        return not leaving.cancelled() and leaving.exception() is None and leaving.result()

    def _is_not_moving(self) -> bool:
        return not self._desired.is_moving()

    async def _give_up(self, starting: asyncio.Future[Query]) -> None:
        """A start that nobody wants any more: cut or not, its query may begin until it is called back."""
        starting.cancel()
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await self._stop(starting.result(), self._stop_timeout_s)

    def _come_to(self, step: str) -> None:
        """The start under way may have to wait for `step`."""
        self._step = step
        if self._status.cause is not None and self._status.state is TaskState.STARTING:
            self._status.tell(TaskState.STARTING, f"waits for {step}")

    async def _tell_of_waiting(self) -> None:
        """Most starts take a second: what one waits for is told when it is another that does."""
        await self._clock.sleep(SLOW_START_S)
        if self._status.state is TaskState.STARTING:
            self._status.tell(TaskState.STARTING, f"waits for {self._step}")

    async def _stop(self, query: Query, within_s: float) -> None:
        """Stop in order; a cut that comes meanwhile makes short work of it."""
        try:
            if self._desired.is_cut():
                await query.stop(0.0)
                return
            stopping = asyncio.ensure_future(query.stop(within_s))
            if not await first(asyncio.shield(stopping), self._desired.changed.until(self._desired.is_cut)):
                await asyncio.gather(stopping, query.stop(0.0))
        except Exception:  # what may be left of it is fenced, or waited for
            spec = self._spec
            log.exception(
                "unexpected trouble at the stop of a query",
                group=spec.group,
                task=spec.task,
                cause_id=new_cause_id(),
            )
            if not spec.definition.is_fenced:
                await query.ended()
