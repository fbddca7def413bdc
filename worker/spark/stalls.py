"""Asks where a silent query is, beside everything else that is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from worker.query_engine import Stall
    from worker.spark.stall_watch import StallWatch
    from worker.spark.whereabouts import Whereabouts

log = structlog.get_logger(__name__)

PATIENCE_S: Final = 5.0
"""How long an answer may take; then the silence is told without one."""


class Stalls:
    """Of one query. To be called by one thread at a time; `stall` is for any.

    Args:
        task: whose query it is.
        watch: the rule.
        where: asks it where it is; may block, and is called in a thread of its own.
    """

    def __init__(self, task: str, watch: StallWatch, where: Callable[[], Whereabouts | None]) -> None:
        self._task = task
        self._watch = watch
        self._where = where
        self._asking: Future[Whereabouts | None] | None = None
        self._asked_at = 0.0

    @property
    def stall(self) -> Stall | None:
        """What is known of its silence."""
        return self._watch.stall

    def heard(self) -> None:
        """A batch is done, or there was none to do: whatever the answer is now, it is out of date."""
        self._asking = None
        self._watch.heard()

    def look(self, *, is_busy: bool, has_input: bool, now: float) -> None:
        """As of the rule, every few seconds."""
        self._take_answer(now)
        if not self._watch.look(is_busy=is_busy, has_input=has_input, now=now):
            return
        if self._asking is None:
            self._asking = in_thread(f"spark-where {self._task}", self._ask)
            self._asked_at = now
        else:
            self._watch.unanswered()

    def _take_answer(self, now: float) -> None:
        asking = self._asking
        if asking is None:
            return
        if asking.done():
            self._asking = None
            if asking.exception() is None:
                self._watch.found(asking.result())
            else:
                self._watch.unanswered()
        elif self._watch.stall is None and now - self._asked_at >= PATIENCE_S:
            self._watch.unanswered()

    def _ask(self) -> Whereabouts | None:
        try:
            return self._where()
        except Exception as error:
            log.debug("where a query is cannot be told", task=self._task, why=str(error))
            raise
