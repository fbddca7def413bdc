"""What events cost the transaction that tells them, on SQLite and PostgreSQL; and what waiting in line costs.

The same rows are committed without events, with one and with ten, in turn. `three writers` is the time of a
commit with one event while two other managers do the same all the time: they wait for one another's commits.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.tools.figures import ResultLine, summary
from manager.core.stored_rows import GroupRow
from manager.storage.sql_storage import SqlStorage
from protocol.messages.events import Event, EventType
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

ROUNDS = 150
EVENTS = (0, 1, 10)
GOALS = {"SQLite": 4.0, "PostgreSQL": 2.5}
"""Two statements more: on SQLite each costs a few changes of threads, more than this machine's disk does."""
QUEUE_GOAL = 8.0


def measure() -> Iterator[ResultLine]:
    """Each against the same commit without events in the same run."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measure(f"sqlite+aiosqlite:///{folder}/m.db", "SQLite"))
        with running() as server:
            yield from asyncio.run(_measure(server.new_database("postgresql+asyncpg"), "PostgreSQL"))


async def _measure(url: str, name: str) -> list[ResultLine]:
    storages = [SqlStorage(url) for _ in range(3)]
    for storage in storages:
        await storage.open()
    first, *others = storages
    taken = await _interleaved(*(_commit(first, "a", events) for events in EVENTS))
    plain = summary(taken[0])[0]
    lines = [
        ResultLine(
            f"{name}: commit with {count} event(s), 1 = without", GOALS[name], *_ratio(seconds, plain), "x"
        )
        for count, seconds in list(zip(EVENTS, taken, strict=True))[1:]
    ]
    if name == "PostgreSQL":
        lines.append(await _three_writers(first, others, plain))
    for storage in storages:
        await storage.close()
    return lines


async def _three_writers(first: SqlStorage, others: list[SqlStorage], plain: float) -> ResultLine:
    busy = [asyncio.create_task(_for_ever(_commit(s, f"b{n}", 1))) for n, s in enumerate(others)]
    (waited,) = await _interleaved(_commit(first, "a", 1))
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    what = "PostgreSQL: commit with 1 event, three writers, 1 = alone without"
    return ResultLine(what, QUEUE_GOAL, *_ratio(waited, plain), "x")


def _commit(storage: SqlStorage, group: str, events: int) -> Callable[[], Awaitable[None]]:
    row = GroupRow(group=group, generation=1)
    told = [Event(id=0, at_ms=1, type=EventType.TASK_FAILED, group=group, cause="x" * 100)] * events
    return lambda: storage.commit([row, *told])


async def _interleaved(*actions: Callable[[], Awaitable[None]]) -> list[list[float]]:
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(ROUNDS):
        for seconds, action in zip(taken, actions, strict=True):
            start = time.perf_counter()
            await action()
            seconds.append(time.perf_counter() - start)
    return taken


async def _for_ever(action: Callable[[], Awaitable[None]]) -> None:
    while True:
        await action()


def _ratio(seconds: list[float], plain: float) -> tuple[float, float]:
    median, spread = summary(seconds)
    return median / plain, spread / plain
