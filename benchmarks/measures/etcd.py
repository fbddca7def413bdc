"""Members that find each other: all join one group at once, until each of them has seen all.

By tooz on etcd, each member a thread with a coordinator of its own that looks at the group again and again,
and by our protocol, each a task that joins, syncs, and holds a heartbeat to hear of newcomers; in turn.
etcd is alone and on this machine's disk, as the manager is. tooz shares nothing out: that would come on top.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
from tooz import ToozError, coordination

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.servers import free_port, manager, peer_process

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = {10: 5, 100: 3}
"""By the number of members; a thousand of tooz's are as many pools of threads, and read a million entries."""
GOAL = 1.0
PATIENCE_S = 60.0
PAUSE_S = 0.001
"""For each member of a group: looking is not to hold up joining."""
HOLD_MS = 10_000
SESSION_MS = 30_000


def measure() -> Iterator[ResultLine]:
    """How many times etcd's time we take."""
    with ExitStack() as stack:
        address = stack.enter_context(server())
        ours = stack.enter_context(manager("--initial-rebalance-delay-ms", "0"))
        for members, rounds in ROUNDS.items():
            _by_tooz(address, "warm", members)
            asyncio.run(_by_us(ours.url, "warm", members))
            pairs = [
                (asyncio.run(_by_us(ours.url, f"g{at}", members)), _by_tooz(address, f"g{at}", members))
                for at in range(rounds)
            ]
            yield _line(members, pairs)


def _line(members: int, pairs: list[tuple[float, float]]) -> ResultLine:
    taken = [f"{1000 * statistics.median(seconds):.3g} ms" for seconds in zip(*pairs, strict=True)]
    ratios = [mine / other for mine, other in pairs]
    what = f"{members} members join at once, until all see all, against etcd with tooz"
    return ResultLine(what, GOAL, *summary(ratios), "times", " against ".join(taken))


@contextmanager
def server() -> Iterator[str]:
    """An etcd of its own; gives HOST:PORT."""
    if shutil.which("etcd") is None:
        raise FileNotFoundError("there is no etcd here; on Debian and Ubuntu: apt-get install etcd-server")
    address, peers = (f"127.0.0.1:{free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        command = ["etcd", "--data-dir", folder, "--initial-cluster", f"default=http://{peers}"]
        for flag in ("--listen-client-urls", "--advertise-client-urls"):
            command += [flag, f"http://{address}"]
        for flag in ("--listen-peer-urls", "--initial-advertise-peer-urls"):
            command += [flag, f"http://{peers}"]
        with peer_process(command, lambda: _try(address), (ToozError, OSError)):
            yield address


def _try(address: str) -> None:
    with closing(_Tooz(address, "first")) as first:
        first.create("first")


class _Tooz:
    """A member as tooz's documentation has it."""

    def __init__(self, address: str, name: str) -> None:
        self._coordinator: Any = coordination.get_coordinator(
            f"etcd3+http://{address}/?api_version=v3", name.encode()
        )
        self._coordinator.start()

    def create(self, group: str) -> None:
        """The group, before anybody can join it."""
        self._coordinator.create_group(group.encode()).get()

    def meet(self, group: str, members: int) -> float:
        """Join, and look until all are there; gives when."""
        self._coordinator.join_group(group.encode()).get()
        deadline = time.perf_counter() + PATIENCE_S
        while len(self._coordinator.get_members(group.encode()).get()) < members:
            if time.perf_counter() > deadline:
                raise TimeoutError("the members on etcd did not all see each other")
            time.sleep(PAUSE_S * members)
        return time.perf_counter()

    def close(self) -> None:
        """Leave."""
        self._coordinator.stop()


def _by_tooz(address: str, group: str, members: int) -> float:
    """Seconds from the first join until the last has seen all."""
    name = f"{group}-{members}"
    each = [_Tooz(address, f"m{number}") for number in range(members)]
    each[0].create(name)
    with ThreadPoolExecutor(members) as pool:
        began = time.perf_counter()
        last: float = max(pool.map(lambda member: member.meet(name, members), each))
        list(pool.map(lambda member: member.close(), each))
    return last - began


async def _by_us(url: str, group: str, members: int) -> float:
    """Seconds until all members of ours have met; whoever leads tells everybody how many they are."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE_S):
        each = [_Ours(session, f"{url}/v1/groups/{group}-{members}", members) for _ in range(members)]
        began = time.perf_counter()
        last = max(await asyncio.gather(*(member.meet() for member in each)))
        await asyncio.gather(*(member.leave() for member in each))
    return last - began


class _Ours:
    """A member by the protocol, without anything to do."""

    def __init__(self, session: aiohttp.ClientSession, group: str, members: int) -> None:
        self._session = session
        self._group = group
        self._members = members
        self._id = ""

    async def meet(self) -> float:
        """Join until the generation has all of them; gives when."""
        while True:
            joined = await self._join()
            everyone = [member["member_id"] for member in joined.get("members", ())]
            seen = await self._sync(joined.get("generation_id", -1), everyone)
            if seen == self._members:
                return time.perf_counter()
            if seen is not None:
                await self._ask("heartbeat", generation_id=joined["generation_id"], wait_ms=HOLD_MS)

    async def leave(self) -> None:
        """In order."""
        async with self._session.post(f"{self._group}/leave", json={"members": [{"member_id": self._id}]}):
            pass

    async def _join(self) -> dict[str, Any]:
        joined = await self._ask(
            "join",
            client_id="bench",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="bench",
            protocols=[{"name": "all", "metadata": None}],
            require_member_id=False,
        )
        self._id = joined.get("member_id", self._id)
        return joined

    async def _sync(self, generation: int, everyone: list[str]) -> int | None:
        """How many they are; None if somebody came meanwhile."""
        given = [{"member_id": member, "assignment": len(everyone)} for member in everyone]
        synced = await self._ask("sync", generation_id=generation, assignments=given)
        return int(synced["assignment"]) if synced["error"] == "NONE" else None

    async def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        async with self._session.post(
            f"{self._group}/{verb}", json={"member_id": self._id, **fields}
        ) as answer:
            told: dict[str, Any] = await answer.json()
            return told
