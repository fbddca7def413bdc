"""Groups that are ours, and cannot be taken up: their rows make no sense. All others are served."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from manager.core.rows import UnreadableError
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN_S: Final = 5.0
"""After which somebody may have mended the rows."""

log = structlog.get_logger(__name__)


class Refused:
    """Each with the answer to whoever asks for it; `again` is called when it is time to read them anew.

    Nothing of such a group is written, so its rows stay as they are until somebody mends them.
    """

    def __init__(self, again: Callable[[], None]) -> None:
        self.is_due = False
        self._again = again
        self._failures: dict[str, Failure] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def get(self, group: str) -> Failure | None:
        """What is answered for `group`; None if it is not one of them."""
        return self._failures.get(group)

    def faults(self) -> dict[str, str]:
        """What is wrong, by group."""
        return {group: failure.message for group, failure in self._failures.items()}

    def add(self, group: str, error: Exception) -> None:
        """It cannot be taken up; said once, however often it is tried."""
        failure = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, _message(group, error))
        if self._failures.get(group) != failure:
            trace = None if isinstance(error, UnreadableError) else error
            log.error("a group cannot be taken up", group=group, why=str(error), exc_info=trace)
        self._failures[group] = failure
        self.try_later()

    def remove(self, group: str) -> None:
        """It has been taken up, or is another manager's."""
        if self._failures.pop(group, None) is not None:
            log.info("a group is no longer refused", group=group)

    def try_later(self) -> None:
        """If there are any."""
        if self._failures and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(AGAIN_S, self._ring)

    def take_due(self) -> tuple[str, ...]:
        """All of them: they are about to be read."""
        self.is_due = False
        return tuple(self._failures)

    def close(self) -> None:
        """Ring no more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _ring(self) -> None:
        self._alarm, self.is_due = None, True
        self._again()


def _message(group: str, error: Exception) -> str:
    what = str(error) if isinstance(error, UnreadableError) else "the log has more"
    return f"group {group} cannot be read from the database ({what}); it is tried again every {AGAIN_S:g} s"
