"""A group of any size whose members only say what workers would: no Spark, no query, one process for all."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import msgspec

from benchmarks.tools.herd import DEFINITION
from cli.client.admin_client import path_of
from protocol.messages.base import Request, Response, encode_opaque
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    Leaver,
    LeaveRequest,
    LeaveResponse,
    MemberAssignment,
    OfferRequest,
    OfferResponse,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
    TaskReport,
)
from protocol.messages.tasks import PutTasksRequest, PutTasksResponse, TaskToPut
from protocol.states import TaskState
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence

GROUP = "large"
SESSION_MS = 1_800_000
"""Members are heard of in rebalances only."""
REBALANCE_MS = 120_000
PATIENCE_S = 100.0
LOOK_S = 0.02
PUT_AT_ONCE = 1000
REPORTED_AT_ONCE = 500
AT_ONCE = 100
"""Requests of a kind that are under way together; joins and syncs wait for each other, so all are."""
METRICS: dict[str, Any] = {
    "rows": 500,
    "batch_ms": 84.0,
    "rows_per_second": 100.0,
    "total_rows": 123_456,
    "load": 0.001,
    "state": {"rows": 100, "bytes": 9000, "memory_bytes": 40_000},
}

A = TypeVar("A", bound=Response)
T = TypeVar("T")


class LargeGroup:
    """Its members by id, each with its tasks and their tokens. Times are seconds, to the last answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.held: dict[str, dict[str, int]] = {}
        self._tasks: list[str] = []
        self._names = 0
        self._generation = -1
        self._session = _session()
        self._own: dict[str, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """All members fall silent."""
        for session in (self._session, *self._own.values()):
            await session.close()

    async def create(self, count: int) -> float:
        """So many tasks, a list of a thousand at a time."""
        begun = time.perf_counter()
        definition = encode_opaque(DEFINITION)
        self._tasks = [f"task-{number:06}" for number in range(count)]
        for names in batched(self._tasks, PUT_AT_ONCE):
            puts = tuple(TaskToPut(task=name, definition=definition) for name in names)
            await self._say("tasks", PutTasksRequest(tasks=puts), PutTasksResponse, method="PUT")
        return time.perf_counter() - begun

    async def join(self, newcomers: int, *, own_connection: bool = False) -> float:
        """So many workers come, and all share the tasks anew, until the last claim is granted and told of.

        The first ones of all are gathered for a while: their time counts from when one of them is answered.
        """
        begun = time.perf_counter()
        sessions = [_session() if own_connection else self._session for _ in range(newcomers)]
        first = [asyncio.ensure_future(self._join("", session)) for session in sessions]
        if self.held:
            await self._until_rebalancing()
        else:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            begun = time.perf_counter()
        answers = await asyncio.gather(*first, *(self._join(each, self._of(each)) for each in self.held))
        for answer, session in zip(answers, sessions, strict=False):
            self.held[answer.member_id] = {}
            if own_connection:
                self._own[answer.member_id] = session
        await self._share(answers)
        return time.perf_counter() - begun

    async def leave(self, member: str) -> float:
        """One says that it goes; the others take its tasks over."""
        begun = time.perf_counter()
        del self.held[member]
        await self._say("leave", LeaveRequest(members=(Leaver(member_id=member),)), LeaveResponse)
        return await self._rejoin(begun)

    async def lose(self, member: str) -> float:
        """One is killed while it sends heartbeats: all that is seen of it is a connection that closes."""
        for _ in range(2):
            await self._beat(member)
        begun = time.perf_counter()
        del self.held[member]
        await self._own.pop(member).close()
        await self._until_rebalancing()
        return await self._rejoin(begun)

    async def _rejoin(self, begun: float) -> float:
        await self._share(await asyncio.gather(*(self._join(each, self._of(each)) for each in self.held)))
        return time.perf_counter() - begun

    async def _until_rebalancing(self) -> None:
        while (await self.get("", _State)).state != "PreparingRebalance":  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_S)

    async def _share(self, answers: Sequence[JoinResponse]) -> None:
        """From the joins to the last report."""
        told = next(iter(answers))
        self._generation = told.generation_id
        shares = shared_out(self._tasks, self.held)
        await self._hear_all(next(each for each in answers if each.member_id == told.leader_id))
        await asyncio.gather(*(self._sync(member, told, shares) for member in self.held))
        wanted = {member: frozenset(tasks) for member, tasks in shares.items()}
        await self._each(self._release(member, wanted[member]) for member in self.held)
        await self._each(self._claim(member, told, shares[member]) for member in self.held)

    async def _join(self, member: str, session: aiohttp.ClientSession) -> JoinResponse:
        self._names += not member
        metadata = encode_opaque({"settles": True, "offer_pages": True, "owned": self.held.get(member, {})})
        request = JoinRequest(
            member_id=member,
            client_id=f"worker-{self._names:04}",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=PROTOCOL_TYPE,
            protocols=(Protocol("sticky", metadata),),
            require_member_id=False,
        )
        return await self._say("join", request, JoinResponse, session)

    async def _hear_all(self, joined: JoinResponse) -> None:
        """The leader asks for what it has not been told of yet, a page at a time, as a worker does."""
        more = joined.more
        while more is not msgspec.UNSET:
            request = OfferRequest(
                member_id=joined.member_id, generation_id=joined.generation_id, after=str(more)
            )
            more = (await self._say("offer", request, OfferResponse, self._of(joined.member_id))).more

    async def _sync(self, member: str, told: JoinResponse, shares: Mapping[str, list[str]]) -> None:
        given = shares.items() if member == told.leader_id else ()
        request = SyncRequest(
            member_id=member,
            generation_id=told.generation_id,
            assignments=tuple(MemberAssignment(who, encode_opaque({"tasks": tasks})) for who, tasks in given),
        )
        await self._say("sync", request, SyncResponse, self._of(member))

    async def _release(self, member: str, wanted: frozenset[str]) -> None:
        lost = {task: token for task, token in self.held[member].items() if task not in wanted}
        if lost:
            request = ReleaseRequest(member_id=member, tasks=lost)
            await self._say("release", request, TaskErrorsResponse, self._of(member))
            self.held[member] = {task: n for task, n in self.held[member].items() if task in wanted}

    async def _claim(self, member: str, told: JoinResponse, tasks: Iterable[str]) -> None:
        held = self.held[member]
        for new in batched((task for task in tasks if task not in held), REPORTED_AT_ONCE):
            claim = ClaimRequest(
                member_id=member, generation_id=told.generation_id, tasks=new, wait_ms=REBALANCE_MS
            )
            answer = await self._say("claim", claim, ClaimResponse, self._of(member))
            granted = {each.task: each.token for each in answer.granted}
            if len(granted) < len(new):
                raise RuntimeError(f"{len(new) - len(granted)} tasks were not granted")
            held |= granted
            await self._report(member, granted)

    async def _report(self, member: str, tokens: Mapping[str, int]) -> None:
        reports = tuple(
            TaskReport(task=task, token=token, state=TaskState.RUNNING, batch_id=3, metrics=METRICS)
            for task, token in tokens.items()
        )
        request = ReportRequest(member_id=member, tasks=reports)
        await self._say("report", request, TaskErrorsResponse, self._of(member))

    async def beat(self) -> float:
        """All members are heard of once."""
        begun = time.perf_counter()
        await self._each(self._beat(member) for member in self.held)
        return time.perf_counter() - begun

    async def _beat(self, member: str) -> None:
        beat = HeartbeatRequest(member_id=member, generation_id=self._generation)
        await self._say("heartbeat", beat, HeartbeatResponse, self._of(member))

    async def fail(self, member: str, count: int) -> None:
        """So many tasks of a member fail."""
        tokens = dict([*self.held[member].items()][:count])
        reports = tuple(
            TaskReport(task=task, token=token, state=TaskState.FAILED, cause="no such table: out")
            for task, token in tokens.items()
        )
        request = ReportRequest(member_id=member, tasks=reports)
        await self._say("report", request, TaskErrorsResponse, self._of(member))

    async def get(self, path: str, into: type[A]) -> A:
        """Read what is below the group's path."""
        async with self._session.get(f"{self.url}{path_of('groups', GROUP)}{path}") as answer:
            return msgspec.json.decode(await answer.read(), type=into)

    async def page(self, path: str) -> tuple[float, int]:
        """Seconds that a page takes, and its bytes."""
        begun = time.perf_counter()
        async with self._session.get(self.url + path) as answer:
            answer.raise_for_status()
            size = len(await answer.read())
        return time.perf_counter() - begun, size

    def _of(self, member: str) -> aiohttp.ClientSession:
        return self._own.get(member, self._session)

    async def _say(
        self,
        verb: str,
        request: Request,
        into: type[A],
        session: aiohttp.ClientSession | None = None,
        method: str = "POST",
    ) -> A:
        """One request; whatever is refused ends the benchmark."""
        url = self.url + path_of("groups", GROUP, verb)
        body = msgspec.json.encode(request)
        headers = {"Content-Type": "application/json"}
        async with (session or self._session).request(method, url, data=body, headers=headers) as answer:
            told = await answer.read()
        with suppress(msgspec.ValidationError):
            return msgspec.json.decode(told, type=into)
        raise RuntimeError(f"{verb}: {told[:200].decode()}")

    async def _each(self, asked: Iterable[Awaitable[None]]) -> None:
        """All of them, `AT_ONCE` at a time."""
        for some in batched(asked, AT_ONCE):
            await asyncio.gather(*some)


class _State(Response, frozen=True, kw_only=True):
    state: str


def batched(items: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    """All of them in order, `most` together."""
    rest = iter(items)
    while some := tuple(islice(rest, most)):
        yield some


def shared_out(tasks: Iterable[str], held: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """The tasks of each member: what it holds, as far as nobody else has fewer than a share for it."""
    names = [*tasks]
    least, more = divmod(len(names), len(held))
    rooms = {member: least + (place < more) for place, member in enumerate(held)}
    shares = {member: [*held[member]][: rooms[member]] for member in held}
    placed = frozenset(chain.from_iterable(shares.values()))
    left = iter([name for name in names if name not in placed])
    for member, share in shares.items():
        share.extend(name for _, name in zip(range(rooms[member] - len(share)), left, strict=False))
    return shares


def _session() -> aiohttp.ClientSession:
    """Its connections stay open: a member whose connection closes is taken for dead."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=3600),
        timeout=aiohttp.ClientTimeout(total=PATIENCE_S),
    )
