"""A member that dies, and a coordinator that does: how soon others go on, against Apache Kafka's brokers.

Each with its own defaults: Kafka's broker has lost its session after 9 s, a manager its lease after 3 s. Of
members the sessions are the same, and so is how often they beat. A member that dies closes its connection,
which only the manager acts upon. The broker that dies is a controller and has its share of the storage, too;
the database of the managers lives on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
import uvloop

from benchmarks.measures.takeover import Cluster, Members
from benchmarks.peers.brokers import apache_kafka, ask_coordinator, kafka_cluster
from benchmarks.peers.kafka_dialect import KafkaDialect
from benchmarks.peers.kafka_members import GROUP, KafkaMembers
from benchmarks.tools.beating_member import BeatingMember
from benchmarks.tools.figures import ResultLine, attempted, summary
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.rebalance_load import LoadGroup
from benchmarks.tools.servers import manager, raise_limit_of_connections
from cli.demo.kafka_broker import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.tools.figures import Curve
    from benchmarks.tools.rebalance_load import Dialect
    from cli.demo.kafka_broker import KafkaBroker

SESSION_MS = 10_000
IN_GROUP = 10
DEATHS = 5
MEMBERS = 1_000
TAKEOVERS = 3
COORDINATORS = 3
PATIENCE_S = 60.0
LOOK_S = 0.01


def measure() -> Iterator[ResultLine | Curve]:
    """Members first."""
    raise_limit_of_connections()
    what = f"a member of {IN_GROUP} dies: to the assignment without it, against Apache Kafka's broker"
    yield from attempted(what, partial(_deaths, what))
    who = f"a coordinator of {COORDINATORS} dies: to heartbeats of {MEMBERS:,} members"
    what = f"{who}, against Apache Kafka's brokers"
    yield from attempted(what, partial(_takeovers, what))


def _compared(what: str, ours: list[float], theirs: list[float]) -> ResultLine:
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    note = f"{summary(ours)[0]:.3g} s against {summary(theirs)[0]:.3g} s"
    return ResultLine(what, 1.0, *summary(ratios), "times", note)


def _deaths(what: str) -> list[ResultLine]:
    return [uvloop.run(_each_dies(what))]


async def _each_dies(what: str) -> ResultLine:
    with ExitStack() as stack:
        server, broker = stack.enter_context(manager()), stack.enter_context(apache_kafka())
        sides: list[Callable[[int], Any]] = [
            partial(_dies, HttpDialect(server.url, SESSION_MS), server.address),
            partial(_dies, KafkaDialect(SESSION_MS), broker.address),
        ]
        pairs = [[await side(number) for side in sides] for number in range(DEATHS)]
    ours, theirs = ([pair[at] for pair in pairs] for at in (0, 1))
    return _compared(what, ours, theirs)


async def _dies(dialect: Dialect, address: tuple[str, int], number: int) -> float:
    """Seconds from the death of one that does not lead to the assignment of the last of the others."""
    group = LoadGroup(f"of-{number}")
    members = [BeatingMember(dialect, group, address) for _ in range(IN_GROUP)]
    for member in members:
        await member.start()
    generation = await _settled(members, above=-1)
    victim = next(member for member in members if not member.leads)
    members.remove(victim)
    victim.die()
    died = asyncio.get_running_loop().time()
    await _settled(members, above=generation)
    for member in members:
        member.die()
    return max(member.settled_at for member in members) - died


async def _settled(members: list[BeatingMember], above: int) -> int:
    """The generation that all of them have, once that is a later one than `above`, and stays."""
    async with asyncio.timeout(PATIENCE_S):
        since, seen = time.monotonic(), above
        while seen <= above or time.monotonic() - since < 1:
            await asyncio.sleep(LOOK_S)
            (one, *others) = {member.settled for member in members}
            now = above if others else one
            if now != seen:
                since, seen = time.monotonic(), now
    return seen


def _takeovers(what: str) -> list[ResultLine]:
    return [_compared(what, asyncio.run(_managers_die()), asyncio.run(_brokers_die()))]


async def _managers_die() -> list[float]:
    with ExitStack() as stack:
        cluster = Cluster(stack)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            members = Members("herd", session)
            await members.settle(cluster.owner("herd"), MEMBERS)
            return [await _manager_dies(cluster, members) for _ in range(TAKEOVERS)]


async def _manager_dies(cluster: Cluster, members: Members) -> float:
    owner = cluster.owner("herd")
    cluster.kill(owner)
    killed = time.monotonic()
    taken = await members.heard(cluster.urls) - killed
    cluster.start(owner.removeprefix("http://"))
    cluster.wait_until_shared(COORDINATORS)
    return taken


async def _brokers_die() -> list[float]:
    with kafka_cluster(COORDINATORS) as brokers:
        members = KafkaMembers()
        await members.settle((HOST, _owner(brokers).port), MEMBERS)
        return [await _broker_dies(brokers, members) for _ in range(TAKEOVERS)]


def _owner(brokers: list[KafkaBroker]) -> KafkaBroker:
    named = ask_coordinator((HOST, brokers[0].port), GROUP)
    return next(broker for broker in brokers if broker.port == named.port)


async def _broker_dies(brokers: list[KafkaBroker], members: KafkaMembers) -> float:
    owner = _owner(brokers)
    owner.kill()
    killed = time.monotonic()
    places = [(HOST, broker.port) for broker in brokers if broker is not owner]
    taken = await members.heard(places) - killed
    await asyncio.to_thread(owner.start)
    return taken
