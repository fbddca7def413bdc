"""Threads that call what users have written."""

from __future__ import annotations

import asyncio
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from worker.threads import DaemonPool, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS = [
    SystemExit(3),
    KeyboardInterrupt("enough"),
    GeneratorExit("enough"),
    asyncio.CancelledError("enough"),
    futures.CancelledError("enough"),
    StopIteration("enough"),
]


class Mute:
    """What has no text of its own."""

    def __str__(self) -> str:
        raise ValueError("no words")


def throw(error: BaseException) -> None:
    """What a sink or an entry point may do."""
    raise error


@pytest.mark.parametrize("call", [partial(in_thread, "test"), DaemonPool(1, "test").submit])
@pytest.mark.parametrize("error", ENDS, ids=repr)
async def test_what_would_end_the_waiting_is_an_error_like_any_other(
    call: Callable[[Callable[[], None]], Any], error: BaseException
) -> None:
    """Neither the event loop ends by it, nor is the task that waits taken for cancelled."""
    with pytest.raises(RuntimeError, match=f"^it raised {type(error).__name__}: {error}$") as told:
        await asyncio.wrap_future(call(partial(throw, error)))
    assert told.value.__cause__ is error


async def test_other_errors_come_as_they_are() -> None:
    """Nothing is put around them."""
    error = LookupError("no such thing")
    with pytest.raises(LookupError) as told:
        await asyncio.wrap_future(in_thread("test", partial(throw, error)))
    assert told.value is error


async def test_an_error_without_words_is_told_as_well() -> None:
    """Whoever waits for it would wait for ever, and the pool would have a thread less."""
    pool = DaemonPool(1, "test")
    with pytest.raises(RuntimeError, match=r"^it raised SystemExit$"):
        await asyncio.wrap_future(pool.submit(throw, SystemExit(Mute())))
    assert await asyncio.wrap_future(pool.submit(len, "go on")) == 5
