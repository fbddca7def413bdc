"""Keeping whoever had a task before from writing, where no query does it: the task is not to run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from telemetry.cause_ids import new_cause_id
from telemetry.foreign_errors import first_line_of
from worker.query_engine import QueryError
from worker.waiting import Backoff, first

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from definition.document import Definition
    from worker.clock import Clock
    from worker.query_engine import QueryEngine, QuerySpec

log = structlog.get_logger(__name__)

AGAIN: Final = Backoff(first_s=1.0, limit_s=60.0)
"""Between tries for a paused task: its owner keeps it, so nobody else is asked."""
UNWANTED: Final = QueryError("something else was wanted before it was done")
"""What comes of an attempt that nobody wants any more, and that nobody is told of."""


class Settling:
    """One life's: whether the fence has been raised to its token, and in which sink."""

    def __init__(self, engine: QueryEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._settled: Definition | None = None

    def done(self, definition: Definition) -> None:
        """The fence was raised in the sink of `definition`, maybe by a query."""
        self._settled = definition

    def is_done(self, definition: Definition) -> bool:
        """Whether that has been done for its sink; one that code of its own writes to is not known apart."""
        settled = self._settled
        return settled is not None and (settled.sink, settled.entrypoint) == (
            definition.sink,
            definition.entrypoint,
        )

    async def attempt(
        self, spec: QuerySpec, unwanted: Awaitable[None], within_s: float | None = None
    ) -> QueryError | None:
        """Raise the fence in the sink.

        Args:
            spec: the task, with the token.
            unwanted: comes about when something else is wanted, and the attempt is given up.
            within_s: how many seconds it may take; None leaves that to the engine.

        Returns:
            Why that could not be done, `UNWANTED` if nobody wants it any more; None if it is done.
        """
        steps = ["its turn"]
        settling = asyncio.ensure_future(self._engine.settle(spec, steps.append))
        try:
            if not await first(self._ended(settling, within_s), unwanted):
                return UNWANTED
            if not settling.done():
                return QueryError(_too_long(within_s, steps[-1]))
            settling.result()
        except Exception as error:  # noqa: BLE001 - a driver's surprise harms this task only
            return failed(error, spec, "at its settling")
        finally:
            settling.cancel()
        self.done(spec.definition)
        return None

    async def _ended(self, settling: asyncio.Future[None], within_s: float | None) -> None:
        if within_s is None:
            await asyncio.wait({settling})
        else:
            await first(asyncio.wait({settling}), self._clock.sleep(within_s))


def _too_long(within_s: float | None, step: str) -> str:
    return (
        f"keeping a former owner from writing was given up after {within_s:g} s, before the manager fences"
        f" the task (--rebalance-timeout-ms): it was waiting for {step}"
    )


def failed(error: Exception, spec: QuerySpec, when: str) -> QueryError:
    """What a start or a settling comes to that raised `error`; what was not foreseen is logged whole."""
    if isinstance(error, QueryError):
        # without its traceback and frames
        return QueryError(error.cause, error.fenced, error.permanent, error.outage)
    cause_id = new_cause_id()
    log.error(
        "unexpected trouble with a task",
        when=when,
        group=spec.group,
        task=spec.task,
        cause_id=cause_id,
        exc_info=error,
    )
    return QueryError(f"{first_line_of(error)} (the worker's log has more under {cause_id})")
