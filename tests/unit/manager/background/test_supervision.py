from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from manager.background.supervision import Loop, once, tell_unhandled, vital
from manager.storage.base import StorageError
from tests.fakes.turns import settle, turn, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Work:
    """Done again and again; raises what it is told to, one after the other, then nothing."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.times = 0

    async def __call__(self) -> None:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
async def begin() -> AsyncIterator[Callable[[Work], Loop]]:
    """Begins loops without a pause; they are ended after the test."""
    begun: list[Loop] = []

    def start(work: Work) -> Loop:
        begun.append(Loop("telling stories", work, 0, "nobody listens", whose="anna"))
        return begun[-1]

    yield start
    for loop in begun:
        await loop.stop()


async def test_what_is_unexpected_is_told_under_a_cause_id_and_the_loop_goes_on(begin: Any) -> None:
    """Each time, with what was done and for whom."""
    with capture_logs() as logs:
        work = Work(ValueError("one"), KeyError("two"))
        begin(work)
        await until(lambda: work.times > 3)
    assert [line["event"] for line in logs] == ["bug beside the requests"] * 2
    assert [(line["doing"], line["whose"]) for line in logs] == [("telling stories", "anna")] * 2
    assert len({line["cause_id"] for line in logs}) == 2
    assert [type(line["exc_info"]) for line in logs] == [ValueError, KeyError]


async def test_trouble_with_the_storage_is_told_once_until_it_is_over(begin: Any) -> None:
    """And again when it comes back."""
    with capture_logs() as logs:
        work = Work(*[StorageError("away")] * 3)
        begin(work)
        await until(lambda: work.times > 4)
        work.errors = [StorageError("again")]
        await until(lambda: not work.errors)
        await settle()
    assert [(line["event"], line["why"]) for line in logs] == [
        ("nobody listens", "away"),
        ("nobody listens", "again"),
    ]


async def test_the_pause_grows_with_each_failure_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two, four, eight periods and so on, half a minute at most; one success and it is as before."""
    pauses: list[float] = []

    def noted(pause_s: float) -> asyncio.Timeout:
        pauses.append(pause_s)
        return asyncio.Timeout(asyncio.get_running_loop().time())

    monkeypatch.setattr(asyncio, "timeout", noted)
    work = Work(*[ValueError()] * 2000)
    with capture_logs():
        loop = Loop("telling stories", work, 1.0, "nobody listens")
        while len(pauses) < 2002:
            await turn()
    monkeypatch.undo()
    await loop.stop()
    assert pauses[:7] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert pauses[1999:2002] == [30.0, 1.0, 1.0]


async def test_a_loop_that_is_finished_ends_its_step_and_begins_no_other() -> None:
    """Not even after the pause that a failure has brought about."""
    going_on, ended = asyncio.Event(), 0

    async def work() -> None:
        nonlocal ended
        await going_on.wait()
        ended += 1
        raise ValueError

    loop = Loop("telling stories", work, 3600, "nobody listens")
    await settle()
    finishing = asyncio.ensure_future(loop.finish())
    await settle()
    assert not finishing.done()
    going_on.set()
    with capture_logs():
        await finishing
    assert ended == 1


async def test_what_comes_to_an_end_is_told_of_if_it_fails() -> None:
    """And raises nothing that somebody would have to ask for."""
    with capture_logs() as logs:
        await once("moving house", Work(ValueError("no")))
    assert [(line["event"], line["doing"]) for line in logs] == [("bug beside the requests", "moving house")]


async def test_what_is_cancelled_before_it_begins_never_was() -> None:
    """No coroutine is left behind that nobody awaits: Python would say so on the log."""
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    tasks = [once("moving house", work), vital("breathing", work, lambda: begun.append("failed"))]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    gc.collect()
    assert begun == []


async def test_what_is_vital_says_when_it_has_failed_and_only_then() -> None:
    """Not when it comes to its end, nor when it is cancelled."""
    failed: list[str] = []
    with capture_logs() as logs:
        await vital("breathing", Work(), lambda: failed.append("well"))
        cancelled = vital("breathing", asyncio.Event().wait, lambda: failed.append("cancelled"))
        await settle()
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await vital("breathing", Work(ValueError()), lambda: failed.append("ill"))
    assert failed == ["ill"]
    assert [(line["doing"], line["ends"]) for line in logs] == [("breathing", "the manager")]


async def test_what_reaches_the_event_loop_is_told_too() -> None:
    """From a timer, or without any exception."""
    loop = asyncio.get_running_loop()
    with capture_logs() as logs:
        tell_unhandled(loop, {"message": "in a timer", "exception": ValueError()})
        tell_unhandled(loop, {"message": "something odd"})
    assert [line["doing"] for line in logs] == ["in a timer", "something odd"]
    assert all(line["cause_id"] for line in logs)
