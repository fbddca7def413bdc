"""Threads that call what users have written."""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.foreign_errors import ENDING, RAISED, UNNAMED, Unspeakable, kind_of
from worker.threads import DaemonPool, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = [*map(type, RAISED), *UNNAMED]
ENDS = [*ENDING, futures.CancelledError("enough"), StopIteration("enough")]


def throw(error: BaseException) -> None:
    """What a sink or an entry point may do."""
    raise error


@pytest.mark.parametrize("call", [partial(in_thread, "test"), DaemonPool(1, "test").submit])
@pytest.mark.parametrize("error", ENDS, ids=kind_of)
async def test_what_would_end_the_waiting_is_an_error_like_any_other(
    call: Callable[[Callable[[], None]], Any], error: BaseException
) -> None:
    """Neither the event loop ends by it, nor is the task that waits taken for cancelled."""
    with pytest.raises(RuntimeError, match=f"^it raised {type(error).__name__}: {error}$") as told:
        await asyncio.wrap_future(call(partial(throw, error)))
    assert told.value.__cause__ is error


@pytest.mark.parametrize("number", range(len(KINDS)))
async def test_whatever_is_raised_whoever_waits_hears_of_it(number: int) -> None:
    """And the pool has its thread for the next one."""
    pool = DaemonPool(1, "test")
    done, _ = await asyncio.wait([asyncio.wrap_future(pool.submit(throw, KINDS[number]()))], timeout=60)
    assert isinstance(done.pop().exception(), Exception)
    assert await asyncio.wait_for(asyncio.wrap_future(pool.submit(len, "go on")), 60) == 5


async def test_other_errors_come_as_they_are() -> None:
    """Nothing is put around them."""
    error = LookupError("no such thing")
    with pytest.raises(LookupError) as told:
        await asyncio.wrap_future(in_thread("test", partial(throw, error)))
    assert told.value is error


async def test_an_error_without_words_is_told_as_well() -> None:
    """By its kind alone, or that it has words that cannot be shown."""
    with pytest.raises(RuntimeError, match=r"^it raised SystemExit$"):
        await asyncio.wrap_future(in_thread("test", partial(throw, SystemExit(""))))
    with pytest.raises(RuntimeError, match=r"^it raised SystemExit: it cannot be shown$"):
        await asyncio.wrap_future(in_thread("test", partial(throw, SystemExit(Unspeakable()))))


async def test_a_pool_that_gets_no_thread_says_so_and_has_one_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was given then is not done behind the back of whoever was refused."""
    pool, done = DaemonPool(2, "test"), list[int]()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", lambda _: throw(RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            pool.submit(done.append, 1)
    await asyncio.wait_for(asyncio.wrap_future(pool.submit(done.append, 2)), 60)
    pool.shutdown()
    assert done == [2]
