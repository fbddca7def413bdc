from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.fakes.turns import settle, turn
from worker.background import BackgroundTasks
from worker.waiting import ChangeSignal, first


async def fail(message: str) -> None:
    raise ValueError(message)


async def test_a_failure_in_the_background_ends_the_wait() -> None:
    """A daemon must not live on with a part of it dead."""
    async with BackgroundTasks() as background:
        background.spawn(fail("boom"))
        with pytest.raises(ValueError, match="boom"):
            await background.watch(asyncio.get_running_loop().create_future())


async def test_only_the_first_failure_is_told() -> None:
    """The rest follow from it."""
    async with BackgroundTasks() as background:
        background.spawn(fail("first"))
        background.spawn(fail("second"))
        with pytest.raises(ValueError, match="first"):
            await background.watch(asyncio.get_running_loop().create_future())


async def test_a_result_is_passed_on() -> None:
    """The usual end."""
    async with BackgroundTasks() as background:
        result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        result.set_result(7)
        assert await background.watch(result) == 7


async def test_nobody_is_left_behind() -> None:
    """What runs for ever is cancelled at the end, and has ended when the end is over."""
    async with BackgroundTasks() as background:
        task = background.spawn(asyncio.Event().wait())
        await settle()
    assert task.cancelled()


async def test_a_failure_nobody_waited_for_makes_no_noise() -> None:
    """The daemon ended for another reason."""
    async with BackgroundTasks() as background:
        background.spawn(fail("boom"))
        await settle()


async def test_a_change_wakes_everybody_who_waits() -> None:
    """One waiter going back to sleep does not keep the others from being woken."""
    changed = ChangeSignal()
    seen: set[str] = set()
    async with BackgroundTasks() as background:
        waits = [
            background.spawn(changed.until(partial(seen.__contains__, name))) for name in ("a", "b", "c")
        ]
        await settle()
        for name in ("b", "c", "a"):
            seen.add(name)
            changed.notify()
            await settle()
        assert all(wait.done() for wait in waits)


async def test_first_tells_which_and_gives_the_other_up() -> None:
    """Both done counts as the other's."""
    never = asyncio.get_running_loop().create_future()
    assert await first(turn(), never)
    assert never.cancelled()
    assert not await first(asyncio.get_running_loop().create_future(), turn())
    done: list[asyncio.Future[None]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    for each in done:
        each.set_result(None)
    assert not await first(*done)


async def test_first_raises_what_either_raised() -> None:
    """A failure is not taken for an end."""
    with pytest.raises(ValueError, match="boom"):
        await first(fail("boom"), asyncio.get_running_loop().create_future())
