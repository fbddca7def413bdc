"""What the worker relies on, whatever runs its queries: one suite for Spark and for the tests' own engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import pytest

from worker.query_engine import QueryError, UpcomingQuery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.query_engine import Prepared, Query, QueryEngine, QuerySpec

LONG_S = 30.0


class Bench(Protocol):
    """An open engine, and queries of each kind on it; every query is of a task of its own."""

    async def endless(self, *, is_prepared: bool = False) -> Query:
        """Runs until it is stopped; with `is_prepared` its start took what `made_ready` has for it."""
        ...

    async def bounded(self) -> Query:
        """Comes to its end by itself, in order."""
        ...

    async def failing(self) -> Query:
        """Starts, and fails then."""
        ...

    async def broken(self) -> Query:
        """Cannot be started."""
        ...


async def made_ready(engine: QueryEngine, spec: QuerySpec) -> Prepared | None:
    """What an engine has made ready for the start of `spec`, before that was granted."""
    return await engine.prepare(UpcomingQuery(spec.group, spec.task, spec.definition, spec.reset))


async def runs_until_it_is_stopped(bench: Bench) -> None:
    """And its end is told to whoever waits, before and after."""
    query = await bench.endless()
    waiting = asyncio.ensure_future(query.ended())
    assert not waiting.done()
    await query.stop(LONG_S)
    assert await waiting is None
    assert await query.ended() is None


async def stops_once(bench: Bench) -> None:
    """Stopping an ended query does nothing."""
    query = await bench.endless()
    await query.stop(LONG_S)
    await query.stop(LONG_S)
    assert await query.ended() is None


async def is_cut_without_time(bench: Bench) -> None:
    """With no time at all it ends all the same, and nothing is wrong with it."""
    query = await bench.endless()
    await query.stop(0.0)
    assert await query.ended() is None


async def comes_to_its_end(bench: Bench) -> None:
    """A bounded query ends in order, and stopping it then does nothing."""
    query = await bench.bounded()
    assert await query.ended() is None
    await query.stop(LONG_S)
    assert await query.ended() is None


async def tells_why_it_failed(bench: Bench) -> None:
    """The cause, one line first."""
    ended = await (await bench.failing()).ended()
    assert ended is not None
    assert ended.cause.splitlines()[0].strip()
    assert not ended.fenced


async def refuses_what_cannot_start(bench: Bench) -> None:
    """At the start, with the cause, and not because of a fence."""
    with pytest.raises(QueryError) as refused:
        await bench.broken()
    assert str(refused.value)
    assert not refused.value.fenced


async def runs_what_it_has_made_ready(bench: Bench) -> None:
    """As any other; an engine that makes nothing ready does without."""
    query = await bench.endless(is_prepared=True)
    await query.stop(LONG_S)
    assert await query.ended() is None


async def runs_several_at_once(bench: Bench) -> None:
    """Started together; the end of one is not the end of another, nor is its failure."""
    first, second, failing = await asyncio.gather(bench.endless(), bench.endless(), bench.failing())
    await failing.ended()
    await first.stop(LONG_S)
    other = asyncio.ensure_future(second.ended())
    await asyncio.wait({other}, timeout=0)
    assert not other.done()
    await second.stop(LONG_S)
    assert first.spec.task != second.spec.task


CONTRACT: tuple[Callable[[Bench], Awaitable[None]], ...] = (
    runs_until_it_is_stopped,
    stops_once,
    is_cut_without_time,
    comes_to_its_end,
    tells_why_it_failed,
    refuses_what_cannot_start,
    runs_what_it_has_made_ready,
    runs_several_at_once,
)
