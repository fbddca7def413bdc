"""Plans that are made before their tasks are granted: who gets them, and that none is left over."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import Definition
from tests.fakes.turns import until
from worker.query_engine import QueryError, ignore_step
from worker.spark import prepared as module
from worker.spark.prepared import AGAIN_S, AT_ONCE, FRESH_S, Plan, PlannedQuery, PreparedStart, PreparedStarts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.spark.starts import StartSteps

DEFINITION = Definition(entrypoint="tested:run")
OTHER = Definition(entrypoint="tested:other")


class Part:
    """One that remembers whether it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class Made:
    """A plan and its parts; while it `is_held` it is being made."""

    def __init__(self, *, is_held: bool = False) -> None:
        self.session, self.connected = Part(), Part()
        self.parts = PlannedQuery(self.session, None, self.connected)  # type: ignore[arg-type]
        self.plan = Plan(DEFINITION, self.parts)
        self.entered = threading.Event()
        self.go_on = threading.Event()
        if not is_held:
            self.go_on.set()

    def make(self, steps: StartSteps) -> Plan:
        steps.at("the first step")
        self.entered.set()
        assert self.go_on.wait(60)
        return self.plan

    async def is_closed(self) -> None:
        """Wait for both parts."""
        for part in (self.session, self.connected):
            assert await asyncio.to_thread(part.closed.wait, 60)

    @property
    def is_open(self) -> bool:
        return not self.session.closed.is_set() and not self.connected.closed.is_set()


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def starts(clock: Clock) -> PreparedStarts:
    return PreparedStarts(clock)


@pytest.fixture
def held() -> Iterator[list[Made]]:
    """As many as may be made at once, and one more; all are let go at the end."""
    made = [Made(is_held=True) for _ in range(AT_ONCE + 1)]
    yield made
    for each in made:
        each.go_on.set()


async def made_by(starts: PreparedStarts, made: Made) -> PreparedStart:
    """One whose plan is there."""
    prepared = starts.begin("t", made.make)
    await asyncio.wait({prepared.making})
    return prepared


async def begun(starts: PreparedStarts, made: Made) -> PreparedStart:
    """One whose plan is being made."""
    prepared = starts.begin("t", made.make)
    await until(made.entered.is_set)
    return prepared


async def test_a_start_takes_what_is_there(starts: PreparedStarts) -> None:
    """Its parts are the start's, whoever discards the rest then."""
    made = Made()
    prepared = await made_by(starts, made)
    taken = await prepared.taken(ignore_step)
    assert taken is made.plan
    assert taken.take(DEFINITION) == made.parts
    prepared.discard()
    starts.close()
    taken.close()
    assert made.is_open


async def test_a_start_waits_for_what_is_being_made(starts: PreparedStarts, held: list[Made]) -> None:
    """And says that it does."""
    told: list[str] = []
    prepared = await begun(starts, held[0])
    taking = asyncio.ensure_future(prepared.taken(told.append))
    await until(lambda: bool(told))
    assert not taking.done()
    held[0].go_on.set()
    assert await taking is held[0].plan
    assert told == ["what is being made ready for it"]


async def test_a_start_waits_for_nothing_that_has_not_begun(starts: PreparedStarts, held: list[Made]) -> None:
    """Others are being made: it begins sooner without, and that one never begins."""
    for each in held[:AT_ONCE]:
        await begun(starts, each)
    last = held[-1]
    prepared = starts.begin("t", last.make)
    told: list[str] = []
    assert await prepared.taken(told.append) is None
    assert told == []
    for each in held:
        each.go_on.set()
    await asyncio.wait({prepared.making})
    assert isinstance(prepared.making.exception(), QueryError)
    assert not last.entered.is_set()


async def test_a_start_waits_so_long_and_no_longer(
    starts: PreparedStarts, held: list[Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes of it later is let go of."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    prepared = await begun(starts, held[0])
    assert await prepared.taken(ignore_step) is None
    held[0].go_on.set()
    await held[0].is_closed()


async def test_one_that_hangs_is_in_nobodys_way(
    starts: PreparedStarts, held: list[Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn ends, and others are made meanwhile."""
    monkeypatch.setattr(module, "TURN_S", 0.0)
    for each in held[:AT_ONCE]:
        await begun(starts, each)
    made = Made()
    assert await (await made_by(starts, made)).taken(ignore_step) is made.plan


async def test_a_start_that_is_given_up_leaves_nothing(starts: PreparedStarts, held: list[Made]) -> None:
    """It was cancelled while it waited for what was being made."""
    prepared = await begun(starts, held[0])
    told: list[str] = []
    taking = asyncio.ensure_future(prepared.taken(told.append))
    await until(lambda: bool(told))
    taking.cancel()
    await asyncio.wait({taking})
    assert taking.cancelled()
    held[0].go_on.set()
    await held[0].is_closed()


async def test_what_is_too_old_is_made_anew(starts: PreparedStarts, clock: Clock) -> None:
    """It is good for half a minute."""
    made = Made()
    prepared = await made_by(starts, made)
    seen = {}
    for seconds in (FRESH_S, FRESH_S + 0.1):
        clock.at = 1000.0 + seconds
        seen[seconds] = prepared.is_stale
    assert seen == {FRESH_S: False, FRESH_S + 0.1: True}
    assert await prepared.taken(ignore_step) is None
    await made.is_closed()


async def test_a_start_that_waits_for_its_turn_does_not_use_what_is_too_old_by_then(
    starts: PreparedStarts, clock: Clock
) -> None:
    """A thousand may be before it: what it has in hand is as old as that when its turn comes."""
    made = Made()
    plan = await (await made_by(starts, made)).taken(ignore_step)
    assert plan is not None
    clock.at += FRESH_S + 0.1
    assert plan.take(DEFINITION) is None
    assert not made.is_open


async def test_what_is_being_made_is_not_stale(
    starts: PreparedStarts, held: list[Made], clock: Clock
) -> None:
    """However long that takes: its age begins when it is there."""
    prepared = await begun(starts, held[0])
    clock.at += 2 * FRESH_S
    assert not prepared.is_stale
    held[0].go_on.set()
    await asyncio.wait({prepared.making})
    assert not prepared.is_stale


async def failed(starts: PreparedStarts) -> PreparedStart:
    """One that could not be made."""

    def fail(_: StartSteps) -> Plan:
        raise QueryError("no such secret")

    prepared = starts.begin("t", fail)
    await asyncio.wait({prepared.making})
    return prepared


async def test_what_has_failed_is_no_trouble_of_the_start(starts: PreparedStarts) -> None:
    """The start tells itself what is wrong."""
    assert await (await failed(starts)).taken(ignore_step) is None


async def test_what_has_failed_is_tried_again_after_a_while(starts: PreparedStarts, clock: Clock) -> None:
    """Each answer to a claim asks: without a pause, a database that is away would be tried without end."""
    prepared = await failed(starts)
    seen = {}
    for seconds in (0.0, AGAIN_S, AGAIN_S + 0.1):
        clock.at = 1000.0 + seconds
        seen[seconds] = prepared.is_stale
    assert seen == {0.0: False, AGAIN_S: False, AGAIN_S + 0.1: True}


@pytest.mark.parametrize("is_there", [True, False], ids=["made", "being made"])
async def test_what_is_discarded_is_closed(starts: PreparedStarts, held: list[Made], is_there: Any) -> None:
    """At once, or when it is there."""
    prepared = await begun(starts, held[0])
    if is_there:
        held[0].go_on.set()
        await asyncio.wait({prepared.making})
    prepared.discard()
    held[0].go_on.set()
    await held[0].is_closed()


async def test_the_end_of_the_engine_closes_all_that_nobody_took(starts: PreparedStarts) -> None:
    """What a start has taken is its own."""
    taken, left = Made(), Made()
    plan = await (await made_by(starts, taken)).taken(ignore_step)
    assert plan is not None
    plan.take(DEFINITION)
    await made_by(starts, left)
    starts.close()
    await left.is_closed()
    assert taken.is_open


async def test_what_is_over_is_not_kept(starts: PreparedStarts) -> None:
    """A worker makes plans for years."""
    for _ in range(3):
        prepared = await made_by(starts, Made())
        prepared.discard()
    await made_by(starts, Made())
    assert len(starts._all) == 1


def test_a_plan_of_something_else_is_closed() -> None:
    """The definition may be another by now, or a secret in it."""
    made = Made()
    assert made.plan.take(OTHER) is None
    assert not made.is_open


def test_a_plan_is_taken_once() -> None:
    """A second start does without."""
    made = Made()
    assert made.plan.take(DEFINITION) == made.parts
    assert made.plan.take(DEFINITION) is None
    assert made.is_open


def test_whoever_fails_to_make_the_session_has_nothing_left() -> None:
    """Its connection would stay open."""
    made = Made()

    def broken(*_: object) -> Any:
        raise QueryError("Spark is gone")

    made.session.query_session = broken  # type: ignore[attr-defined]
    with pytest.raises(QueryError):
        made.parts.query_session(None, lambda: True)  # type: ignore[arg-type]
    assert not made.is_open
