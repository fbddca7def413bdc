from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from assignors.base import Assignor, Member, Task
from tests.fakes.clock import FakeClock
from tests.fakes.turns import settle
from worker.membership.assignor_calls import MOST_FAULTS, AssignorCalls, UnusableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from assignors.base import Assignment

MEMBERS = (Member("m"),)
TASKS = (Task("a"), Task("b"))
LIMIT_S = 10


class Slow(Assignor):
    """Comes back when the test lets it, once for each call."""

    name = "slow"

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.gate = threading.Semaphore(0)

    @property
    def busy(self) -> int:
        """How many threads it has."""
        return sum(thread.is_alive() for thread in self.threads)

    def assign(
        self,
        members: Sequence[Member],  # noqa: ARG002 - it gives all to one member
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - wherever it was
    ) -> Assignment:
        self.threads.append(threading.current_thread())
        self.gate.acquire()
        return {"m": [task.name for task in tasks]}


class Bench:
    """One slow assignor on a clock that a test moves."""

    def __init__(self) -> None:
        self.assignor = Slow()
        self.clock = FakeClock()
        self.decisions = AssignorCalls([self.assignor], self.clock, LIMIT_S)

    def ask(self, *tasks: Task) -> asyncio.Future[Assignment]:
        """Have it decide, in the background."""
        return asyncio.ensure_future(self.decisions.decide("slow", MEMBERS, tasks or TASKS, {}))

    async def overdue(self) -> None:
        """It has not come back in time."""
        asked = self.ask()
        await self.clock.advance(LIMIT_S)
        with pytest.raises(UnusableError, match="longer than 10 s"):
            await asked

    async def back(self) -> None:
        """It comes back from one call."""
        busy = self.decisions._busy["slow"]
        self.assignor.gate.release()
        await asyncio.wait([busy])
        await settle()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """An assignor that keeps no thread once the test is over."""
    bench = Bench()
    yield bench
    bench.assignor.gate.release(100)


async def test_its_word_counts_if_it_comes_in_time(bench: Bench) -> None:
    """However close."""
    asked = bench.ask()
    await bench.clock.advance(LIMIT_S - 0.001)
    bench.assignor.gate.release()
    assert await asked == {"m": ["a", "b"]}


async def test_one_that_does_not_come_back_costs_one_thread_however_often_the_group_rebalances(
    bench: Bench,
) -> None:
    """It is not asked again, and nobody waits for it again."""
    await bench.overdue()
    before = bench.clock.now()
    for _ in range(20):
        with pytest.raises(UnusableError, match="has not come back from an earlier rebalance"):
            await bench.ask()
    assert (bench.assignor.busy, len(bench.assignor.threads), bench.clock.now()) == (1, 1, before)


async def test_one_that_has_come_back_late_is_asked_again(bench: Bench) -> None:
    """What it said about the past is thrown away, and that is told."""
    await bench.overdue()
    with capture_logs() as logs:
        await bench.back()
    assert [entry["event"] for entry in logs] == ["assignor came back too late, its answer is thrown away"]
    asked = bench.ask(Task("c"))
    bench.assignor.gate.release()
    assert await asked == {"m": ["c"]}


async def test_one_that_was_overtaken_is_waited_for_and_asked_about_the_present(bench: Bench) -> None:
    """A rebalance that comes while it decides is no reason to give up on it, nor for a second thread."""
    overtaken = bench.ask()
    await settle()
    overtaken.cancel()
    asked = bench.ask(Task("c"))
    await settle()
    assert (bench.assignor.busy, len(bench.assignor.threads)) == (1, 1)
    await bench.back()
    bench.assignor.gate.release()
    assert await asked == {"m": ["c"]}
    assert len(bench.assignor.threads) == 2


async def test_one_that_was_overtaken_and_does_not_come_back_is_given_up_within_one_limit(
    bench: Bench,
) -> None:
    """Waiting for the call before counts as part of the time it has."""
    overtaken = bench.ask()
    await settle()
    overtaken.cancel()
    await bench.overdue()
    assert (bench.assignor.busy, len(bench.assignor.threads)) == (1, 1)


async def test_the_event_loop_goes_on_while_an_assignor_is_busy_computing() -> None:
    """It never waits for anything, and still the loop turns: that is what ends it here."""
    turned = threading.Event()

    class Busy(Slow):
        def assign(self, *_: Any) -> Assignment:
            while not turned.is_set():
                pass
            return {"m": ["a"]}

    asking = asyncio.ensure_future(
        AssignorCalls([Busy()], FakeClock(), LIMIT_S).decide("slow", MEMBERS, TASKS, {})
    )
    await settle()
    asyncio.get_running_loop().call_soon(turned.set)
    assert await asking == {"m": ["a"]}


async def test_an_assignor_s_thread_does_not_keep_the_process_alive() -> None:
    """Nobody can end it, so the end of the process must not wait for it."""
    daemons = []

    class Looks(Slow):
        def assign(self, *_: Any) -> Assignment:
            daemons.append(threading.current_thread().daemon)
            return {"m": ["a"]}

    await AssignorCalls([Looks()], FakeClock(), LIMIT_S).decide("slow", MEMBERS, TASKS, {})
    assert daemons == [True]


def test_an_answer_that_comes_after_the_loop_has_ended_is_dropped() -> None:
    """The worker has ended meanwhile; what a thread raises would be a warning, and so fail the test."""
    gate, threads = threading.Event(), []

    class Waits(Slow):
        def assign(self, *_: Any) -> Assignment:
            threads.append(threading.current_thread())
            gate.wait()
            return {"m": ["a"]}

    async def ask() -> None:
        asking = asyncio.ensure_future(
            AssignorCalls([Waits()], FakeClock(), LIMIT_S).decide("slow", MEMBERS, TASKS, {})
        )
        while not threads:
            await settle()
        assert not asking.done()

    asyncio.run(ask())
    gate.set()
    threads[0].join()


def _answers(answer: Callable[[], Any]) -> AssignorCalls:
    class Cheat(Slow):
        def assign(self, *_: Any) -> Assignment:
            given: Assignment = answer()
            return given

    return AssignorCalls([Cheat()], FakeClock(), LIMIT_S)


async def test_of_many_faults_some_are_told_one_by_one() -> None:
    """A line in a log is to be read."""
    with pytest.raises(UnusableError) as caught:
        await _answers(lambda: {"m": [f"x{at}" for at in range(1000)]}).decide("slow", MEMBERS, TASKS, {})
    assert str(caught.value).count("; ") == MOST_FAULTS
    assert str(caught.value).endswith("; and 995 more")


async def test_an_answer_without_an_end_is_read_in_the_thread_too() -> None:
    """Else the event loop would read it for ever."""
    gate = threading.Event()

    class Endless(dict[str, Any]):
        def items(self) -> Any:
            gate.wait()
            return {}.items()

    clock = FakeClock()

    class Cheat(Slow):
        def assign(self, *_: Any) -> Assignment:
            return Endless()

    asking = asyncio.ensure_future(
        AssignorCalls([Cheat()], clock, LIMIT_S).decide("slow", MEMBERS, TASKS, {})
    )
    await clock.advance(LIMIT_S)
    with pytest.raises(UnusableError, match="longer than 10 s"):
        await asking
    gate.set()


async def test_nobody_can_change_an_answer_afterwards() -> None:
    """The assignor may keep what it has returned."""
    kept = {"m": ["a"]}
    decided = await _answers(lambda: kept).decide("slow", MEMBERS, TASKS, {})
    kept["m"].append("a")
    assert decided == {"m": ["a"]}


async def test_one_that_was_never_heard_of_is_no_bug() -> None:
    """A manager chooses what all members know; a worker does not end because one got that wrong."""
    with pytest.raises(UnusableError, match="does not know it"):
        await AssignorCalls([], FakeClock(), LIMIT_S).decide("slow", MEMBERS, TASKS, {})


async def test_an_error_is_one_line() -> None:
    """The trace is in the log."""

    def raises() -> Any:
        raise LookupError("no\nsuch thing")

    with capture_logs() as logs, pytest.raises(UnusableError, match=r"^LookupError: no$"):
        await _answers(raises).decide("slow", MEMBERS, TASKS, {})
    assert [(entry["event"], entry["exc_info"]) for entry in logs] == [("assignor raised", True)]
