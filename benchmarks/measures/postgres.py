"""What managers ask of PostgreSQL: commits a second of one, two and four of them, and what a rebalance takes.

Offsets are committed, one a request, each connection to a group of its own. The server does not wait for its
disk, as machines that are shared have disks that are: what is told is what managers and database can do. A
rebalance is compared with the same on SQLite, which does wait for its disk, in turn.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import sqlalchemy as sa
import uvloop

from benchmarks.measures.takeover import Cluster
from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.load import request, send_all
from benchmarks.tools.rebalance_load import Rounds
from benchmarks.tools.servers import manager
from cli.client.admin_client import path_of
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit

if TYPE_CHECKING:
    from collections.abc import Iterator

MANAGERS = (1, 2, 4)
CONNECTIONS = 24
"""Of all managers together."""
COMMITS = 6_000
RUNS = 5
MEMBERS = 10
ROUNDS = 50
WARM_UP = 5
COMMIT_GOAL = 1.1
SHARED_CORES = "managers, database and load share two cores: more of them have no more to do it with"
ONE_MORE_TRIP = "a transaction is three trips to another process there, and a call of a library with SQLite"
FLUSH_S = 1.5
"""After which PostgreSQL has told what it has counted."""
SQLITE_GOAL = 3.0


class Asked(NamedTuple):
    """What a database has been asked for so far: transactions, and bytes of its log."""

    transactions: int
    log_bytes: int


def measure() -> Iterator[ResultLine]:
    """Commits first."""
    one, *more = (_rates(managers) for managers in MANAGERS)
    yield ResultLine("commits a second of 1 manager on PostgreSQL", None, *summary(one), "a second")
    for managers, rates in zip(MANAGERS[1:], more, strict=True):
        ratios = [statistics.median(one) / rate for rate in rates]
        note = f"{statistics.median(rates):,.0f} a second"
        what = f"time of a commit on PostgreSQL, {managers} managers against 1"
        yield ResultLine(what, COMMIT_GOAL, *summary(ratios), "times", note, SHARED_CORES)
    yield from uvloop.run(_rebalances())


def _rates(managers: int) -> list[float]:
    with ExitStack() as stack:
        cluster = Cluster(stack, managers)
        shares = _shares(cluster)
        return [_rate(shares) for _ in range(1 + RUNS)][1:]


def _shares(cluster: Cluster) -> dict[tuple[str, int], list[str]]:
    """As many groups of each manager as it has connections, by its address."""
    most = CONNECTIONS // len(cluster.urls)
    shares: dict[tuple[str, int], list[str]] = {}
    for number in range(100 * CONNECTIONS):
        host, port = cluster.owner(f"g{number}").removeprefix("http://").split(":")
        groups = shares.setdefault((host, int(port)), [])
        if len(groups) < most:
            groups.append(f"g{number}")
        if sum(map(len, shares.values())) == most * len(cluster.urls):
            return shares
    raise RuntimeError("some manager has too few groups")


def _rate(shares: dict[tuple[str, int], list[str]]) -> float:
    """Commits a second of all managers together; each has a process of its own that asks."""
    with ProcessPoolExecutor(len(shares)) as pool:
        asked = [
            pool.submit(_commit, address, groups, COMMITS // len(shares))
            for address, groups in shares.items()
        ]
        begun, ended = zip(*(each.result() for each in asked), strict=True)
    return COMMITS / float(max(ended) - min(begun))


def _commit(address: tuple[str, int], groups: list[str], count: int) -> tuple[float, float]:
    """When it began and ended, by the monotonic clock."""
    requests = cycle(
        request(address[0], path_of("groups", group, "offsets", "commit"), _body(offset))
        for offset in range(2)
        for group in groups
    )
    begun = send_all(address, islice(requests, count), len(groups))
    return begun, time.monotonic()


def _body(offset: int) -> bytes:
    return msgspec.json.encode(CommitOffsetsRequest(offsets={"k": OffsetToCommit(encode_opaque(offset))}))


async def _rebalances() -> list[ResultLine]:
    with ExitStack() as stack:
        cluster, server = Cluster(stack, 1), stack.enter_context(manager())
        (url,) = cluster.urls
        host, port = url.removeprefix("http://").split(":")
        ours = await _settled(HttpDialect(url), (host, int(port)))
        other = await _settled(HttpDialect(server.url), server.address)
        pairs = [(await ours.one(), await other.one()) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
        idle, begun = _asked(cluster.database), time.monotonic()
        await asyncio.sleep(FLUSH_S)
        before, rested = _asked(cluster.database), time.monotonic() - begun
        for _ in range(ROUNDS):
            await ours.one()
        after, took = _asked(cluster.database), time.monotonic() - begun - rested
    share = took / rested
    told = [
        (late - early - share * (early - first)) / ROUNDS
        for first, early, late in zip(idle, before, after, strict=True)
    ]
    mine, theirs = ([pair[at] for pair in pairs] for at in (0, 1))
    ratios = [each / sqlite for each, sqlite in pairs]
    note = f"{1000 * statistics.median(mine):.3g} ms against {1000 * statistics.median(theirs):.3g} ms"
    what = f"join + sync of {MEMBERS} members on PostgreSQL against SQLite"
    return [
        ResultLine(what, SQLITE_GOAL, *summary(ratios), "times", note, ONE_MORE_TRIP),
        ResultLine(f"transactions of PostgreSQL to rebalance {MEMBERS} members", 2.5, told[0], 0, "each"),
        ResultLine(f"PostgreSQL's log of a rebalance of {MEMBERS} members", None, told[1] / 1000, 0, "kB"),
    ]


async def _settled(dialect: HttpDialect, address: tuple[str, int]) -> Rounds:
    rounds = Rounds(dialect)
    await rounds.connect(address, 1, MEMBERS)
    await rounds.one()
    return rounds


def _asked(database: str) -> Asked:
    """Once what was done before has been counted."""
    time.sleep(FLUSH_S)
    engine = sa.create_engine(sa.make_url(database).set(drivername="postgresql+psycopg"))
    try:
        with engine.connect() as connection:
            transactions = connection.scalar(
                sa.text("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
            )
            log_bytes = connection.scalar(sa.text("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
    finally:
        engine.dispose()
    return Asked(int(transactions or 0), int(log_bytes or 0))
