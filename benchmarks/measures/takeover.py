"""How soon another manager answers a thousand members when theirs is killed; what more managers are worth."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.load import answers_a_second, request
from benchmarks.tools.servers import raise_limit_of_connections
from cli.client.admin_client import AdminClient, path_of
from manager.cluster.slots import slot_of
from manager.settings import ManagerSettings
from protocol.messages.base import NULL
from protocol.messages.cluster import ManagerListResponse
from protocol.messages.membership import HeartbeatRequest, JoinRequest, Protocol, SyncRequest
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MEMBERS = 1000
MANAGERS = 3
RUNS = 3
LEASE_S = ManagerSettings().lease_ms / 1000
SESSION_MS = 120_000
PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.0)
"""As a worker looks for its coordinator (protocol §7)."""
PATIENCE_S = 60.0
CONNECTIONS = 30
SECONDS = 2.0


class Cluster:
    """Managers on one PostgreSQL, whose `database` is that URL."""

    def __init__(self, stack: ExitStack, managers: int = MANAGERS) -> None:
        raise_limit_of_connections()
        self.database = stack.enter_context(running()).new_database("postgresql+asyncpg")
        self._stack = stack
        self._processes: dict[str, subprocess.Popen[str]] = {}
        for _ in range(managers):
            self.start("127.0.0.1:0")
        self.wait_until_shared(managers)

    def start(self, listen: str) -> None:
        """One more manager."""
        command = [sys.executable, "-m", "cli", "manager", "--listen", listen, "--database", self.database]
        command += ["--initial-rebalance-delay-ms", "4000", "--log-level", "error"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._stack.callback(process.kill)
        assert process.stdout is not None
        self._processes[process.stdout.readline().split()[-1]] = process

    @property
    def urls(self) -> list[str]:
        """Of those that run."""
        return list(self._processes)

    def kill(self, url: str) -> None:
        """SIGKILL."""
        process = self._processes.pop(url)
        process.kill()
        process.wait()

    def listed(self) -> ManagerListResponse:
        """Managers and slots."""
        return AdminClient(self.urls).get(path_of("managers"), ManagerListResponse)

    def wait_until_shared(self, count: int) -> None:
        """Until so many managers have their share, none of which moves any more."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_shared(count):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not {count} managers")
            time.sleep(0.2)

    def _is_shared(self, count: int) -> bool:
        listed = self.listed()
        return sum(m.alive and m.slots >= len(listed.slots) // count for m in listed.managers) >= count

    def owner(self, group: str) -> str:
        """The URL of the manager that has `group`."""
        listed = self.listed()
        holder = listed.slots[slot_of(group, len(listed.slots))].manager
        return next(manager.url for manager in listed.managers if manager.id == holder)

    def groups(self) -> dict[str, str]:
        """A group of each manager, by its URL."""
        return {self.owner(f"g{n}"): f"g{n}" for n in range(200)}


class Members:
    """The members of one group, each with its own connection and its own patience."""

    def __init__(self, group: str, session: aiohttp.ClientSession) -> None:
        self._group = group
        self._session = session
        self.beats: list[bytes] = []

    async def post(self, url: str, verb: str, body: Any) -> dict[str, Any]:
        """One request; a broken connection is an error like any other."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        try:
            async with self._session.post(url + path_of("groups", self._group, verb), data=data) as answer:
                found: dict[str, Any] = await answer.json()
                return found
        except (aiohttp.ClientError, OSError):
            return {"error": "COORDINATOR_NOT_AVAILABLE"}

    async def settle(self, url: str, count: int) -> None:
        """Bring the group to Stable."""
        join = JoinRequest(
            member_id="",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="bench",
            protocols=(Protocol("range", NULL),),
            require_member_id=False,
        )
        joined = await asyncio.gather(*(self.post(url, "join", join) for _ in range(count)))
        bodies = [
            {"member_id": j["member_id"], "generation_id": j["generation_id"]}
            for j in sorted(joined, key=lambda j: j["member_id"] != j["leader_id"])
        ]
        await asyncio.gather(*(self.post(url, "sync", msgspec.convert(b, SyncRequest)) for b in bodies))
        self.beats = [msgspec.json.encode(msgspec.convert(body, HeartbeatRequest)) for body in bodies]

    async def heard(self, urls: list[str]) -> float:
        """When the last of them had a heartbeat accepted, by a manager that they find as workers do."""
        return max(await asyncio.gather(*(self._beat(urls, n, body) for n, body in enumerate(self.beats))))

    async def _beat(self, urls: list[str], number: int, body: bytes) -> float:
        url, tries = urls[number % len(urls)], 0
        while True:
            answer = await self.post(url, "heartbeat", body)
            if answer["error"] == "NONE":
                return time.monotonic()
            coordinator = answer.get("coordinator") or {}
            url = coordinator.get("url", urls[(number + tries) % len(urls)])
            await asyncio.sleep(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
            tries += 1


def measure() -> list[ResultLine]:
    """Leases until every member was heard elsewhere, and heartbeats of one, two and three managers."""
    with ExitStack() as stack:
        cluster = Cluster(stack)
        return [asyncio.run(_with_members(_takeovers, cluster)), *asyncio.run(_with_members(_rates, cluster))]


async def _with_members(
    run: Callable[[Cluster, aiohttp.ClientSession], Awaitable[Any]], cluster: Cluster
) -> Any:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return await run(cluster, session)


async def _takeovers(cluster: Cluster, session: aiohttp.ClientSession) -> ResultLine:
    members = Members("herd", session)
    await members.settle(cluster.owner("herd"), MEMBERS)
    taken = []
    for _ in range(RUNS):
        owner = cluster.owner("herd")
        cluster.kill(owner)
        killed = time.monotonic()
        taken.append((await members.heard(cluster.urls) - killed) / LEASE_S)
        cluster.start(owner.removeprefix("http://"))
        cluster.wait_until_shared(MANAGERS)
    what = f"manager killed: first heartbeats of {MEMBERS} elsewhere, leases of {LEASE_S:g} s"
    return ResultLine(what, 2.0, *summary(taken), "leases")


async def _rates(cluster: Cluster, session: aiohttp.ClientSession) -> list[ResultLine]:
    bodies = {}
    for url, group in cluster.groups().items():
        members = Members(group, session)
        await members.settle(url, CONNECTIONS)
        host, port = url.removeprefix("http://").split(":")
        path = path_of("groups", group, "heartbeat")
        bodies[host, int(port)] = [request(host, path, body) for body in members.beats]
    rates = [[_rate(dict(list(bodies.items())[:n])) for n in (1, 2, 3)] for _ in range(RUNS)]
    for n in (1, 2, 3):
        print(f"  {n} managers: {max(rate[n - 1] for rate in rates):,.0f} heartbeats/s", file=sys.stderr)
    return [
        ResultLine(
            f"time of a heartbeat, {n} managers against 1",
            1.1,
            *summary([r[0] / r[n - 1] for r in rates]),
            "times",
        )
        for n in (2, 3)
    ]


def _rate(bodies: dict[tuple[str, int], list[bytes]]) -> float:
    """Answers a second of all managers together; each has a process of its own that asks."""
    with ProcessPoolExecutor(len(bodies)) as pool:
        asked = [pool.submit(answers_a_second, address, each, SECONDS) for address, each in bodies.items()]
        return sum(each.result() for each in asked)
