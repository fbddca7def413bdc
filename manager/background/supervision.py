"""What a manager does beside its requests. Every task of it is begun here, and none ends without a word.

- `Loop`: something that is done again and again. Trouble with the storage is waited out; anything unexpected
  is told under a cause id, and done again after a pause that grows.
- `once`: something that comes to an end. What it raises is told, and whoever began it begins it again.
- `vital`: something without which the manager is of no use: it ends with it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog

from manager.storage.base import StorageError
from telemetry.cause_ids import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    Work = Callable[[], Coroutine[Any, Any, object]]
    """Called as it begins: a coroutine made before, of a task that is cancelled by then, is never awaited."""

log = structlog.get_logger(__name__)

LONGEST_PAUSE_S: Final = 30.0
"""After so many seconds at most, what has failed unexpectedly is done again."""
MOST_DOUBLINGS: Final = 10
CANCEL_AGAIN_S: Final = 3.0


class Loop:
    """Does `work` again and again, until it is stopped.

    Args:
        name: what is done, for people.
        work: one step; one that goes on for ever is begun anew when it fails.
        period_s: seconds between two steps.
        trouble: what to say when the storage does not let it be done; once, until it was done again.
        about: what else the log says of it.
    """

    def __init__(
        self, name: str, work: Callable[[], Awaitable[None]], period_s: float, trouble: str, **about: object
    ) -> None:
        self._name = name
        self._work = work
        self._period_s = period_s
        self._trouble = trouble
        self._about = about
        self._is_ending = asyncio.Event()
        self._is_in_trouble = False
        self._bugs = 0
        self._task = asyncio.create_task(self._run(), name=name)

    async def finish(self) -> None:
        """No further step; the one under way comes to its end."""
        self._is_ending.set()
        await asyncio.wait([self._task])

    def cancel(self) -> None:
        """End it, soon."""
        self._is_ending.set()
        self._task.cancel()

    async def stop(self) -> None:
        """End it now; again if need be: a driver in trouble may answer that with an error of its own."""
        while not self._task.done():
            self.cancel()
            await asyncio.wait([self._task], timeout=CANCEL_AGAIN_S)

    async def _run(self) -> None:
        while not self._is_ending.is_set():
            await self._step()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._is_ending.wait()

    async def _step(self) -> None:
        try:
            await self._work()
            self._is_in_trouble = False
            self._bugs = 0
        except StorageError as error:
            if not self._is_in_trouble:
                log.warning(self._trouble, why=str(error), **self._about)
            self._is_in_trouble = True
        except Exception as error:  # noqa: BLE001 - a bug in one step must not end the loop
            self._bugs += 1
            tell_bug(self._name, error, retry_s=self._pause_s(), **self._about)

    def _pause_s(self) -> float:
        """Twice as long after each failure that was not expected."""
        doubled: float = self._period_s * 2 ** min(self._bugs, MOST_DOUBLINGS)
        return max(self._period_s, min(doubled, LONGEST_PAUSE_S))


def once(name: str, work: Work) -> asyncio.Task[None]:
    """Begin something that comes to an end; the task raises nothing."""
    return asyncio.create_task(_told(name, work), name=name)


async def _told(name: str, work: Work) -> None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - nobody is there to hear of it
        tell_bug(name, error)


def vital(name: str, work: Work, on_failure: Callable[[], None]) -> asyncio.Task[None]:
    """Begin something that the manager cannot be without; `on_failure` is called when it has failed."""
    return asyncio.create_task(_vital(name, work, on_failure), name=name)


async def _vital(name: str, work: Work, on_failure: Callable[[], None]) -> None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - whoever waits for it has to be answered, and the rest to stop
        tell_bug(name, error, ends="the manager")
        on_failure()


def tell_bug(name: str, error: BaseException, **about: object) -> None:
    """A line of the log, with an id that nothing else has."""
    log.error("bug beside the requests", doing=name, cause_id=new_cause_id(), **about, exc_info=error)


def tell_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A line for what reached the event loop: from a timer, a callback, a task that nobody waits for."""
    error = context.get("exception") or RuntimeError(context["message"])
    tell_bug(str(context["message"]), error)
