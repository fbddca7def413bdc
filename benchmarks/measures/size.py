"""A group of up to 100,000 tasks over 1,000 workers without Spark: what each change, page and list takes.

Every cost is taken at three sizes, a hundred tasks a worker, and told for the largest with how it grows. What
the manager's event loop was held for at a stretch, by its own processor time, is what heartbeats of others
waited for at most.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import uvloop

from benchmarks.tools.figures import Curve, ResultLine, growth
from benchmarks.tools.large_group import GROUP, LargeGroup
from benchmarks.tools.servers import ServerProcess, raise_limit_of_connections, serving
from cli.client.admin_client import path_of
from manager.console.pages.links import group_path, task_path, worker_path
from manager.settings import GroupSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    Costs = Mapping[str, "Cost"]

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (300, 1_000, 3_000)
TASKS_A_WORKER = 100
RUNS = 5
GROWTH_GOAL = 1.1
HELD_GOAL_MS = 50.0
PAGE_GOAL_KB = 300.0
PAGE_GOAL_MS = 300.0
MEMORY_GOAL_MB = 1000.0
GRACE_S = GroupSettings().disconnect_grace_ms / 1000
FAILED = 3

CREATE = "create them, 1,000 at a time"
SETTLE = "all workers join, first answer to last claim"
JOIN = "one more joins, to the last claim"
KILL = "one is killed, less the grace of a connection"
LEAVE = "one leaves, to the last claim"
RESTART = "restart of the manager, to a heartbeat of each"
LIST = "list by REST"
COMMAND = "`sparkherd tasks list`"
_COLLECTOR = (
    "a full run of Python's garbage collector looks at all that has come since the last one, 0.07 s of"
    " processor time at most with 100,000 tasks"
)
_JOINED = (
    f"{_COLLECTOR}; one turn takes the leader's assignment in, 0.055 s by itself when all of it is new,"
    " 0.020 s when a tenth of the members are given something else"
)
REASONS = {CREATE: _COLLECTOR, SETTLE: _JOINED, JOIN: _JOINED, KILL: _JOINED, LEAVE: _JOINED}
"""Of the longest turns, found with the group core by itself, with and without the collector."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, for how many ms at a stretch the event loop was held at most, and the bytes of the answer."""

    seconds: float
    held_ms: float
    size: int = 0


@dataclass(frozen=True, slots=True)
class Sized:
    """All that was measured at one size; `memory` is the manager's, resident, before its restart."""

    tasks: int
    changes: Costs
    pages: Costs
    lists: Costs
    memory: int


def measure() -> Iterator[ResultLine | Curve]:
    """Up to 100,000 tasks."""
    return _measured(SIZES)


def quick() -> Iterator[ResultLine | Curve]:
    """Up to 3,000."""
    return _measured(QUICK_SIZES)


def _measured(sizes: Sequence[int]) -> Iterator[ResultLine | Curve]:
    raise_limit_of_connections()
    found = [uvloop.run(_at(tasks)) for tasks in sizes]
    yield from _told("", [each.changes for each in found], sizes)
    yield from _told("page of ", [each.pages for each in found], sizes)
    yield from _told("", [each.lists for each in found], sizes)
    memory = [each.memory / 1e6 for each in found]
    what = f"a manager with {sizes[-1]:,} tasks, after all of this"
    yield ResultLine(what, MEMORY_GOAL_MB, memory[-1], 0, "MB", _each(sizes, memory, "MB"))
    yield growth("growth of its memory", GROWTH_GOAL, sizes, memory)
    yield Curve(
        "changes of a large group",
        "tasks",
        "seconds",
        {
            what: [(each.tasks, each.changes[what].seconds) for each in found]
            for what in (CREATE, SETTLE, JOIN, RESTART)
        },
    )


def _told(kind: str, costs: Sequence[Costs], sizes: Sequence[int]) -> Iterator[ResultLine]:
    for what in costs[-1]:
        of_each = [each[what] for each in costs]
        name, largest = f"{sizes[-1]:,} tasks: {kind}{what}", of_each[-1]
        seconds = [cost.seconds for cost in of_each]
        if kind:
            yield ResultLine(name, PAGE_GOAL_KB, largest.size / 1000, 0, "kB")
            yield ResultLine(name, PAGE_GOAL_MS, largest.seconds * 1000, 0, "ms")
        else:
            yield ResultLine(name, None, largest.seconds, 0, "s", _each(sizes, seconds, "s"))
        yield growth(f"growth: {kind}{what}", GROWTH_GOAL, sizes, seconds)
        held = [cost.held_ms for cost in of_each]
        note = _each(sizes, held, "ms")
        why = REASONS.get(what, "")
        yield ResultLine(f"{name}: longest turn", HELD_GOAL_MS, held[-1], 0, "ms", note, why)


def _each(sizes: Sequence[int], values: Sequence[float], unit: str) -> str:
    return ", ".join(f"{size:,}: {value:.3g} {unit}" for size, value in zip(sizes, values, strict=True))


async def _at(tasks: int) -> Sized:
    """One group from its first task to the end of its manager."""
    with ExitStack() as stack:
        herd = _Herd(stack)
        try:
            changes = await _grown(herd, tasks)
            pages = {what: await herd.page(path) for what, path in _pages(herd.group).items()}
            lists = {
                LIST: await herd.page(f"{path_of('groups', GROUP, 'tasks')}"),
                COMMAND: await _list(herd),
            }
            changes |= await _shrunk(herd)
            memory = herd.memory
            changes[RESTART] = await herd.restart()
            return Sized(tasks, changes, pages, lists, memory)
        finally:
            await herd.group.close()


async def _grown(herd: _Herd, tasks: int) -> dict[str, Cost]:
    group = herd.group
    changes = {
        CREATE: await herd.cost(group.create(tasks)),
        SETTLE: await herd.cost(group.join(tasks // TASKS_A_WORKER)),
        JOIN: await herd.cost(group.join(1, own_connection=True)),
    }
    await group.fail(next(iter(group.held)), FAILED)
    return changes


async def _shrunk(herd: _Herd) -> dict[str, Cost]:
    group = herd.group
    return {
        KILL: await herd.cost(group.lose([*group.held][-1]), less_s=GRACE_S),
        LEAVE: await herd.cost(group.leave([*group.held][-1])),
    }


def _pages(group: LargeGroup) -> dict[str, str]:
    """Every kind of page that says something of the group."""
    member, held = next(iter(group.held.items()))
    of_group = group_path(GROUP)
    return {
        "the overview": "/",
        "the group": of_group,
        "the group, at its end": f"{of_group}?page=99999&workers=99999",
        "the group, tasks by name": f"{of_group}?q=9",
        "the group, failed tasks": f"{of_group}?state=FAILED",
        "a task": task_path(GROUP, next(iter(held))),
        "a worker": worker_path(GROUP, member),
        "all workers": "/workers",
        "the events": "/events",
    }


async def _list(herd: _Herd) -> Cost:
    """The command as a process, from its start to its end."""
    herd.held()
    begun = time.perf_counter()
    command = ("-m", "cli", "tasks", "list", "--group", GROUP, "--manager", herd.group.url)
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"`sparkherd tasks list` ended with {process.returncode}")
    return Cost(time.perf_counter() - begun, herd.held(), len(printed))


class _Herd:
    """A manager on a database of its own, and the members of its one group."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._database = f"sqlite+aiosqlite:///{folder}/manager.db"
        self._server = self._start()
        self.group = LargeGroup(self._server.url)

    def _start(self) -> ServerProcess:
        return self._stack.enter_context(serving("-m", "benchmarks.tools.watched_manager", self._database))

    @property
    def memory(self) -> int:
        """Resident, in bytes."""
        resident: int = psutil.Process(self._server.process.pid).memory_info().rss
        return resident

    def held(self) -> float:
        """For how many ms at a stretch the event loop was held at most since this was asked before."""
        self._server.process.send_signal(signal.SIGUSR1)
        assert self._server.process.stdout is not None
        return float(self._server.process.stdout.readline())

    async def cost(self, change: Awaitable[float], less_s: float = 0.0) -> Cost:
        """What a change takes, of which so many seconds are known to pass idly."""
        self.held()
        seconds = await change
        return Cost(seconds - less_s, self.held())

    async def page(self, path: str) -> Cost:
        """The median of some times; each has the same size."""
        self.held()
        times, sizes = zip(*[await self.group.page(path) for _ in range(RUNS)], strict=True)
        return Cost(statistics.median(times), self.held(), sizes[-1])

    async def restart(self) -> Cost:
        """Kill the manager, start it on the same database, and be heard of there."""
        self._server.process.kill()
        self._server.process.wait()
        begun = time.perf_counter()
        self._server = await asyncio.to_thread(self._start)
        self.group.url = self._server.url
        await self.group.beat()
        return Cost(time.perf_counter() - begun, self.held())
