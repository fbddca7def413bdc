"""Groups that are ours, and cannot be taken up: their rows make no sense. All others are served."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from manager.background.supervision import once
from manager.core.stored_rows import UnreadableError
from manager.storage.base import StorageError
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from manager.core.stored_rows import Unreadable

AGAIN_S: Final = 5.0
"""After which somebody may have mended the rows."""

log = structlog.get_logger(__name__)


class UnloadableGroups:
    """Each with the answer to whoever asks for it; read anew from time to time, beside all other work.

    Nothing of such a group is written, so its rows stay as they are until somebody mends them.

    Args:
        read: is called when it is time; takes them up if it can. May raise `StorageError`.
    """

    def __init__(self, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._read = read
        self._failures: dict[str, Failure] = {}
        self._rows: dict[str, Unreadable] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False

    def get(self, group: str) -> Failure | None:
        """What is answered for `group`; None if it is not one of them."""
        return self._failures.get(group)

    def faults(self) -> dict[str, str]:
        """What is wrong, by group."""
        return {group: failure.message for group, failure in self._failures.items()}

    def rows(self) -> tuple[Unreadable, ...]:
        """The row that stands in the way of each group, as far as it is one."""
        return tuple(self._rows.values())

    def add(self, group: str, error: Exception) -> None:
        """It cannot be taken up; said once, however often it is tried."""
        failure = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, _message(group, error))
        if self._failures.get(group) != failure:
            trace = None if isinstance(error, UnreadableError) else error
            log.error("a group cannot be taken up", group=group, why=str(error), exc_info=trace)
        self._failures[group] = failure
        if isinstance(error, UnreadableError):
            self._rows[group] = error.row
        else:
            self._rows.pop(group, None)
        self.try_later()

    def remove(self, group: str) -> None:
        """It has been taken up, or is another manager's."""
        self._rows.pop(group, None)
        if self._failures.pop(group, None) is not None:
            log.info("a group is no longer refused", group=group)

    def try_later(self) -> None:
        """If there are any."""
        if self._failures and not self._is_closed and self._alarm is None and self._reading is None:
            self._alarm = asyncio.get_running_loop().call_later(AGAIN_S, self._begin)

    def close(self) -> None:
        """Read no more."""
        self._is_closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._reading is not None:
            self._reading.cancel()

    def _begin(self) -> None:
        self._alarm = None
        self._reading = once("reading refused groups again", self._read_all)

    async def _read_all(self) -> None:
        try:
            await self._read()
        except StorageError as error:
            log.warning("refused groups were not read again", error=str(error))
        finally:
            self._reading = None
            self.try_later()


def _message(group: str, error: Exception) -> str:
    what = str(error) if isinstance(error, UnreadableError) else "the log has more"
    return f"group {group} cannot be read from the database ({what}); it is tried again every {AGAIN_S:g} s"
