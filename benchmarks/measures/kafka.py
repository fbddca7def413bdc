"""Heartbeats and rebalances against other coordinators, each over its own protocol, by the same load.

Apache Kafka's broker runs as Kafka's own scripts start it; it answers a sync once its log has the assignment,
which is in the system's memory then, and the manager once its database has committed. Tansu and librdkafka's
mock cluster keep everything in memory, and let every rebalance take a fixed time, whoever has rejoined: Tansu
two thirds of a session, the mock cluster a session less a second. That is most of what is measured of Tansu;
the mock's is not measured at all, as it refuses the sync of every follower that comes after its leader's.
"""

from __future__ import annotations

import asyncio
import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import uvloop

from benchmarks.peers.brokers import apache_kafka, mock_cluster, tansu
from benchmarks.peers.kafka_dialect import KafkaDialect
from benchmarks.tools.figures import ResultLine, attempted, summary
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.rebalance_load import Rounds
from benchmarks.tools.servers import manager, raise_limit_of_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager

    from benchmarks.peers.brokers import Peer
    from benchmarks.tools.figures import Curve
    from benchmarks.tools.rebalance_load import Dialect

CONNECTIONS = 50
ROUNDS = 5
REBALANCES = 9
SECONDS = 1.0
WARM_UP = 5
"""Rounds that are not counted: a JVM has its best code later than others."""
SESSION_MS = 6_000
"""The least that Kafka's brokers take by default; Tansu's rebalances take as long as sessions let them."""
HEARTBEAT_GOAL = 1.0
HEARTBEAT_REASON = (
    "theirs is compiled and reads some bytes of a binary protocol; of our processor time a seventh is the"
    " system's, most of the rest aiohttp's and the event loop's (`anatomy`)"
)
APACHE = "Apache Kafka's broker"


class Side(NamedTuple):
    """Somebody to compare with, and how it is spoken to."""

    start: Callable[[], AbstractContextManager[Peer]]
    dialect: Dialect


class Beaten(NamedTuple):
    """Heartbeats a second, and the microseconds of processor time of each, if the server is a process."""

    rate: float
    spent_us: float


SIDES = {
    APACHE: Side(apache_kafka, KafkaDialect()),
    "Tansu": Side(tansu, KafkaDialect(SESSION_MS)),
    "librdkafka's mock cluster": Side(mock_cluster, KafkaDialect()),
}
REBALANCED = (
    *((APACHE, 1, members) for members in (10, 100, 500)),
    (APACHE, 1_000, 5),
    *(("Tansu", 1, members) for members in (10, 100)),
)
"""Who, how many groups, of how many members each."""


def measure() -> Iterator[ResultLine | Curve]:
    """Heartbeats against all, rebalances against those that can be measured."""
    raise_limit_of_connections()
    for name in SIDES:
        what = f"time of a heartbeat against {name}"
        yield from attempted(what, partial(_run, partial(_heartbeats, what, name)))
    for name, groups, members in REBALANCED:
        what = f"join + sync of {_size(groups, members)} against {name}"
        yield from attempted(what, partial(_run, partial(_rebalances, what, name, groups, members)))


def quick() -> Iterator[ResultLine | Curve]:
    """Against Apache Kafka's broker only, at a middling size."""
    what = f"time of a heartbeat against {APACHE}"
    yield from _run(partial(_heartbeats, what, APACHE))
    what = f"join + sync of 100 members against {APACHE}"
    yield from _run(partial(_rebalances, what, APACHE, 1, 100))


def _size(groups: int, members: int) -> str:
    return f"{members} members" if groups == 1 else f"{groups:,} groups of {members} at once"


def _run(measured: Callable[[], Coroutine[Any, Any, list[ResultLine]]]) -> list[ResultLine]:
    return uvloop.run(measured())


async def _heartbeats(what: str, name: str) -> list[ResultLine]:
    """A group for each connection, so that nobody waits for anybody."""
    with ExitStack() as stack:
        server, peer = stack.enter_context(manager()), stack.enter_context(SIDES[name].start())
        ours, theirs = await asyncio.gather(
            _settled(HttpDialect(server.url), server.address, CONNECTIONS, 1),
            _settled(SIDES[name].dialect, peer.address, CONNECTIONS, 1),
        )
        pairs = [
            (await _beaten(ours, server.process.pid), await _beaten(theirs, peer.pid))
            for _ in range(WARM_UP + ROUNDS)
        ][WARM_UP:]
    mine, other = ([pair[at] for pair in pairs] for at in (0, 1))
    lines = [_by_time(what, mine, other)]
    return lines if peer.pid is None else [*lines, _by_processor(what, mine, other)]


async def _beaten(rounds: Rounds, pid: int | None) -> Beaten:
    process = psutil.Process(pid)
    before = process.cpu_times()
    rate = await rounds.rate(SECONDS)
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return Beaten(rate, 1e6 * spent / (rate * SECONDS))


def _by_time(what: str, ours: list[Beaten], theirs: list[Beaten]) -> ResultLine:
    ratios = [other.rate / mine.rate for mine, other in zip(ours, theirs, strict=True)]
    rates = [statistics.median(each.rate for each in side) for side in (ours, theirs)]
    note = f"{rates[0]:,.0f} against {rates[1]:,.0f} a second"
    return ResultLine(what, HEARTBEAT_GOAL, *summary(ratios), "times", note, HEARTBEAT_REASON)


def _by_processor(what: str, ours: list[Beaten], theirs: list[Beaten]) -> ResultLine:
    ratios = [mine.spent_us / other.spent_us for mine, other in zip(ours, theirs, strict=True)]
    spent = [statistics.median(each.spent_us for each in side) for side in (ours, theirs)]
    note = f"{spent[0]:.0f} against {spent[1]:.0f} µs"
    what = f"processor {what}"
    return ResultLine(what, HEARTBEAT_GOAL, *summary(ratios), "times", note, HEARTBEAT_REASON)


async def _rebalances(what: str, name: str, groups: int, members: int) -> list[ResultLine]:
    with ExitStack() as stack:
        server, peer = stack.enter_context(manager()), stack.enter_context(SIDES[name].start())
        ours, theirs = await asyncio.gather(
            _settled(HttpDialect(server.url), server.address, groups, members),
            _settled(SIDES[name].dialect, peer.address, groups, members),
        )
        warm_up, counted = (WARM_UP, REBALANCES) if name == APACHE else (0, 3)
        pairs = [(await ours.one(), await theirs.one()) for _ in range(warm_up + counted)][warm_up:]
    ratios = [mine / other for mine, other in pairs]
    taken = [f"{1000 * statistics.median(seconds):.3g} ms" for seconds in zip(*pairs, strict=True)]
    return [ResultLine(what, 1.0, *summary(ratios), "times", " against ".join(taken))]


async def _settled(dialect: Dialect, address: tuple[str, int], groups: int, members: int) -> Rounds:
    rounds = Rounds(dialect)
    await rounds.connect(address, groups, members)
    await rounds.one()
    return rounds
