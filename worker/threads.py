"""Threads that may hang: unlike the standard library's pools they do not keep the process from ending."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from telemetry.foreign_errors import FAILURES, kind_of, text_of
from telemetry.scope import in_scope

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def in_thread(name: str, function: Callable[[], Result]) -> Future[Result]:
    """Call `function` in a thread of its own."""
    future: Future[Result] = Future()
    work = in_scope(partial(_fulfil, future, function))
    threading.Thread(target=work, name=name, daemon=True).start()
    return future


class DaemonPool(Executor):
    """At most `size` threads; what is submitted beyond that waits for one of them."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_over = False

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Have a thread call `fn`.

        Raises:
            RuntimeError: the pool was shut down, or has no thread and gets none.
        """
        future: Future[Result] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError(f"the threads {self._name} were let go")
            if len(self._threads) < self._size:
                self._hire()
            self._work.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        """Take no more; what was submitted is done, and waited for with `wait`."""
        del cancel_futures
        with self._lock:
            self._is_over = True
            for _ in self._threads:
                self._work.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def join(self, within_s: float) -> None:
        """Wait for the threads to end after a shutdown, all together so many seconds at most."""
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _hire(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            _fulfil(*work)


def _fulfil(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except FAILURES as error:
        future.set_exception(_harmless(error))
    else:
        future.set_result(result)


_OF_ASYNCIO: Final = (StopIteration, CancelledError)
"""By the first an awaited future does not end as it should; by the second its task looks cancelled."""


def _harmless(error: BaseException) -> Exception:
    """To raise where it is awaited: a worker would end there by `sys.exit()` in a sink or an entry point."""
    try:
        if isinstance(error, Exception) and not isinstance(error, _OF_ASYNCIO):
            return error
    except FAILURES:  # it has a `__class__` of its own
        pass
    text = text_of(error)
    told = RuntimeError(f"it raised {kind_of(error)}{text and ': '}{text}")
    told.__cause__ = error
    return told
