"""What members cost a manager: memory when idle, processor time of heartbeats, transactions to rebalance."""

from __future__ import annotations

import asyncio
import urllib.request
from typing import TYPE_CHECKING

import psutil
import uvloop

from benchmarks.tools.figures import Curve, ResultLine, growth, summary
from benchmarks.tools.heartbeat_load import CONNECTIONS, PATIENT, REASON, beats, processor_time, settled
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.rebalance_load import Rounds
from benchmarks.tools.servers import bare, manager, raise_limit_of_connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.tools.servers import ServerProcess

MEGABYTE = 1_000_000
IDLE = (1_000, 3_000, 10_000)
GROUP_SIZE = 100
AT_ONCE = 1_000
"""So many join at a time; what a storm of joins takes, the allocator keeps."""
HOLD_MS = 100_000
SETTLE_S = 1.0
"""For what was sent to have arrived; the members are idle then."""
MEMORY_GOAL = 250.0
MEMORY_REASON = (
    "5.8 kB of a member are aiohttp's connection alone, and a heartbeat that is held keeps aiohttp's request"
    " and task besides; what a storm of joins takes, the allocator keeps"
)
CPU_GOAL = 1 / 0.7
TRANSACTIONS_GOAL = 2.0
"""The generation with its members, and the assignment: each is told only when it is durable."""
ROUNDS = 5
COMMITS = "sparkherd_storage_commit_seconds_count"


def measure() -> Iterator[ResultLine | Curve]:
    """Memory at three sizes, then what is spent by the request and the rebalance."""
    raise_limit_of_connections()
    yield from uvloop.run(_memory())
    yield from quick()


def quick() -> Iterator[ResultLine | Curve]:
    """Without the ten thousand."""
    yield from _processor()
    yield uvloop.run(_transactions())


async def _memory() -> list[ResultLine | Curve]:
    """Resident bytes with members that each hold a connection and a heartbeat on it, as a worker does."""
    with manager() as server:
        before, taken = _resident(server), list[int]()
        kept: list[Rounds] = []
        for members in IDLE:
            while len(kept) * AT_ONCE < members:
                kept.append(await _idle(server, len(kept)))
            await asyncio.sleep(SETTLE_S)
            taken.append(_resident(server))
    each = [(after - before) / members for members, after in zip(IDLE, taken, strict=True)]
    what = f"a manager with {IDLE[-1]:,} idle members, each with its connection"
    note = f"{each[-1] / 1000:.3g} kB a member; {before / MEGABYTE:.0f} MB with none"
    return [
        ResultLine(what, MEMORY_GOAL, taken[-1] / MEGABYTE, 0, "MB", note, MEMORY_REASON),
        growth("growth of its memory with idle members", 1.1, IDLE, [after - before for after in taken]),
        Curve(
            "memory of idle members",
            "members",
            "bytes more than with none",
            {"sparkherd": [(members, after - before) for members, after in zip(IDLE, taken, strict=True)]},
        ),
    ]


async def _idle(server: ServerProcess, number: int) -> Rounds:
    """A thousand more."""
    dialect = HttpDialect(server.url)
    rounds = Rounds(dialect)
    groups = AT_ONCE // GROUP_SIZE
    await rounds.connect(server.address, groups, GROUP_SIZE, first=number * groups)
    await rounds.one()
    rounds.say(lambda group, joined: dialect.heartbeat(group, joined, HOLD_MS))
    return rounds


def _processor() -> Iterator[ResultLine]:
    """Of heartbeats over many connections, both servers in turn."""
    with bare() as other, manager(*PATIENT) as ours:
        bodies = beats(settled(ours, CONNECTIONS))
        pairs = [
            (sum(processor_time(ours, bodies)), sum(processor_time(other, bodies))) for _ in range(ROUNDS)
        ]
    mine, theirs = zip(*pairs, strict=True)
    note = f"{summary(mine)[0]:.3g} ms, bare {summary(theirs)[0]:.3g} ms; stated for Kafka's broker: 13.7 ms"
    ratios = [m / t for m, t in pairs]
    yield ResultLine("processor time of 1,000 heartbeats", CPU_GOAL, *summary(ratios), "times", note, REASON)


async def _transactions() -> ResultLine:
    """Of one group whose members rejoin."""
    counts = []
    with manager() as server:
        rounds = Rounds(HttpDialect(server.url))
        await rounds.connect(server.address, 1, GROUP_SIZE)
        await rounds.one()
        for _ in range(ROUNDS):
            before = _commits(server)
            await rounds.one()
            counts.append(_commits(server) - before)
    what = f"database transactions of a rebalance of {GROUP_SIZE} members"
    return ResultLine(what, TRANSACTIONS_GOAL, *summary(counts), "commits")


def _commits(server: ServerProcess) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        told: str = answer.read().decode()
    counts = [float(line.split()[-1]) for line in told.splitlines() if line.startswith(COMMITS)]
    (count,) = counts
    return count


def _resident(server: ServerProcess) -> int:
    resident: int = psutil.Process(server.process.pid).memory_info().rss
    return resident
