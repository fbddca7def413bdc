"""Threads that call what users have written."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from worker.threads import DaemonPool, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS = [SystemExit(3), KeyboardInterrupt("enough"), asyncio.CancelledError("enough"), GeneratorExit("enough")]


def throw(error: BaseException) -> None:
    """What a sink or an entry point may do."""
    raise error


@pytest.mark.parametrize("call", [partial(in_thread, "test"), DaemonPool(1, "test").submit])
@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
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
