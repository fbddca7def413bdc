"""The worker's lease on itself, asked from the process of a task."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from itertools import count
from typing import TYPE_CHECKING, Final

from worker.isolation.messages import MayWrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.isolation.messages import Answer

ANSWER_S: Final = 10.0
"""How long the worker may take to answer; one that is frozen or gone does not."""
FRESH_S: Final = 1.0
"""How old an answer may be that is believed: this process may have been frozen while it was on its way."""


class RemoteLease:
    """Asks each time anew; to be made in the event loop."""

    def __init__(
        self, send: Callable[[MayWrite], None], now: Callable[[], float], answer_s: float = ANSWER_S
    ) -> None:
        """`send` sends a question to the worker, in the event loop; `now` is a clock, in seconds."""
        self._send = send
        self._now = now
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._asked: dict[int, Future[bool]] = {}

    def may_write(self) -> bool:
        """Whether the worker may write; no answer means no. For any thread but that of the event loop."""
        until = self._now() + self._answer_s
        while (asked_at := self._now()) < until:
            if not self._answer(until - asked_at):
                return False
            if self._now() - asked_at <= FRESH_S:
                return True
        return False

    def answered(self, answer: Answer) -> None:
        """The worker's word; that on a question which nobody waits for any more helps nobody."""
        if (asked := self._asked.pop(answer.number, None)) is not None:
            asked.set_result(answer.may_write)

    def _answer(self, within_s: float) -> bool:
        answer: Future[bool] = Future()
        with contextlib.suppress(TooLate, RuntimeError):  # the latter: the loop is closed
            self._loop.call_soon_threadsafe(self._ask, answer)
            return answer.result(within_s)
        return False

    def _ask(self, answer: Future[bool]) -> None:
        number = next(self._numbers)
        self._asked[number] = answer
        self._send(MayWrite(number))
