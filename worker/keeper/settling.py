"""Keeping whoever had a task before from writing, where no query does it: the task is not to run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from telemetry.causes import new_cause_id
from worker.backoff import Backoff
from worker.executor import Ended, StartError
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from worker.executor import Executor, QuerySpec

log = structlog.get_logger(__name__)

AGAIN: Final = Backoff(first_s=1.0, limit_s=60.0)
"""Between tries for a paused task: its owner keeps it, so nobody else is asked."""


class Settling:
    """One life's; `is_done` once the fence has been raised to its token, by a query of it as well."""

    def __init__(self, executor: Executor) -> None:
        self.is_done = False
        self._executor = executor

    async def attempt(self, spec: QuerySpec, unwanted: Awaitable[None]) -> Ended | None:
        """Raise the fence in the sink.

        Args:
            spec: the task, with the token.
            unwanted: comes about when something else is wanted, and the attempt is given up.

        Returns:
            Why that could not be done; None if it is done or given up.
        """
        settling = asyncio.ensure_future(self._executor.settle(spec))
        try:
            if not await first(asyncio.wait({settling}), unwanted):
                return None
            settling.result()
        except Exception as error:  # noqa: BLE001 - a driver's surprise harms this task only
            return failed(error, spec, "at its settling")
        finally:
            settling.cancel()
        self.is_done = True
        return None


def failed(error: Exception, spec: QuerySpec, when: str) -> Ended:
    """What a start or a settling comes to that raised `error`; what was not foreseen is logged whole."""
    if isinstance(error, StartError):
        return Ended(str(error), fenced=error.fenced, permanent=error.permanent)
    cause_id = new_cause_id()
    log.error(
        "unexpected trouble with a task",
        when=when,
        group=spec.group,
        task=spec.task,
        cause_id=cause_id,
        exc_info=error,
    )
    return Ended(f"{type(error).__name__}: {error} (the worker's log has more under {cause_id})")
