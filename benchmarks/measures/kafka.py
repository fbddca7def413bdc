"""Heartbeats and rebalances against other coordinators, each over its own protocol, by the same load.

Tansu and librdkafka's mock cluster keep everything in memory; the manager commits to a disk before it answers
a join or a sync. Both let every rebalance take a fixed time, whoever has rejoined: Tansu two thirds of a
session, the mock cluster a session less a second. That is most of what is measured of Tansu; the mock's is
not measured at all, as it refuses the sync of every follower that comes after its leader's.
"""

from __future__ import annotations

import asyncio
import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.peers.brokers import mock_cluster, tansu
from benchmarks.peers.kafka_dialect import KafkaDialect
from benchmarks.tools.figures import ResultLine, attempted, summary
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.rebalance_load import Rounds
from benchmarks.tools.servers import manager

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager

    from benchmarks.peers.brokers import Address
    from benchmarks.tools.figures import Curve
    from benchmarks.tools.rebalance_load import Dialect

CONNECTIONS = 50
MEMBERS = (10, 100)
ROUNDS = 5
REBALANCES = 3
SECONDS = 1.0
SESSION_MS = 6_000
"""The least that Kafka's brokers take by default; Tansu's rebalances take as long as sessions let them."""
HEARTBEAT_GOAL = 1.0
HEARTBEAT_REASON = (
    "theirs is compiled and reads some bytes of a binary protocol; of our processor time a seventh is the"
    " system's, most of the rest aiohttp's and the event loop's (`anatomy`)"
)
KAFKA = "stated, not measured here, for Apache Kafka's broker on two such cores:"
KAFKA_MS = {10: 11, 100: 30}
BROKERS = {
    "Tansu": (tansu, KafkaDialect(SESSION_MS)),
    "librdkafka's mock cluster": (mock_cluster, KafkaDialect()),
}


def measure() -> Iterator[ResultLine | Curve]:
    """Heartbeats against both, rebalances against the one that can be measured."""
    for name, (broker, dialect) in BROKERS.items():
        what = f"time of a heartbeat against {name}"
        yield from attempted(what, partial(_run, partial(_heartbeats, what, broker, dialect)))
    for members in MEMBERS:
        what = f"join + sync of {members} members against Tansu"
        yield from attempted(what, partial(_run, partial(_rebalances, what, members)))


def _run(measured: Callable[[], Coroutine[Any, Any, ResultLine]]) -> list[ResultLine]:
    return [uvloop.run(measured())]


async def _heartbeats(
    what: str, broker: Callable[[], AbstractContextManager[Address]], dialect: Dialect
) -> ResultLine:
    """A group for each connection, so that nobody waits for anybody."""
    with ExitStack() as stack:
        server, address = stack.enter_context(manager()), stack.enter_context(broker())
        ours, theirs = await asyncio.gather(
            _settled(HttpDialect(server.url), server.address, CONNECTIONS, 1),
            _settled(dialect, address, CONNECTIONS, 1),
        )
        rates = [(await ours.rate(SECONDS), await theirs.rate(SECONDS)) for _ in range(ROUNDS)]
    mine, other = ([rate[at] for rate in rates] for at in (0, 1))
    return _heartbeat(what, mine, other)


def _heartbeat(what: str, ours: list[float], theirs: list[float]) -> ResultLine:
    ratios = [other / mine for mine, other in zip(ours, theirs, strict=True)]
    note = f"{statistics.median(ours):,.0f} against {statistics.median(theirs):,.0f} a second; {KAFKA} 90,000"
    return ResultLine(what, HEARTBEAT_GOAL, *summary(ratios), "times", note, HEARTBEAT_REASON)


async def _rebalances(what: str, members: int) -> ResultLine:
    with ExitStack() as stack:
        server, broker = stack.enter_context(manager()), stack.enter_context(tansu())
        ours, theirs = await asyncio.gather(
            _settled(HttpDialect(server.url), server.address, 1, members),
            _settled(KafkaDialect(SESSION_MS), broker, 1, members),
        )
        pairs = [(await ours.one(), await theirs.one()) for _ in range(REBALANCES)]
    ratios = [mine / other for mine, other in pairs]
    taken = [f"{1000 * statistics.median(seconds):.3g} ms" for seconds in zip(*pairs, strict=True)]
    note = f"{' against '.join(taken)}; {KAFKA} {KAFKA_MS[members]} ms"
    return ResultLine(what, 1.0, *summary(ratios), "times", note)


async def _settled(dialect: Dialect, address: tuple[str, int], groups: int, members: int) -> Rounds:
    rounds = Rounds(dialect)
    await rounds.connect(address, groups, members)
    await rounds.one()
    return rounds
