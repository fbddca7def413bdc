"""A manager in the test's own process: it keeps what it is asked until the test, or a rule of it, answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    OfferRequest,
    OfferResponse,
    SyncRequest,
    SyncResponse,
)
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    GrantedTask,
    LagRequest,
    LagResponse,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
    TaskReport,
)
from tests.fakes.turns import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.tasks import Reached, TaskHome, TaskReset

Asked = TypeVar("Asked", bound=msgspec.Struct)
Request = TypeVar("Request", bound=msgspec.Struct)

DEFINITION: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "noop"}}


def granted(
    task: str,
    token: int = 1,
    target: str = "RUNNING",
    version: int = 1,
    restart_count: int = 0,
    *,
    reset: TaskReset | None = None,
    reached: Reached | None = None,
    home: TaskHome | None = None,
    **changes: Any,
) -> GrantedTask:
    """A granted task; `changes` are keys of its definition."""
    definition = msgspec.Raw(msgspec.json.encode(DEFINITION | changes))
    return GrantedTask(task, token, target, definition, version, restart_count, reset, reached, home)


def failure(code: ErrorCode, **fields: Any) -> Failure:
    """A refusal."""
    return Failure(code, f"the test says {code.name}", fields)


@dataclass(eq=False)
class Call(Generic[Asked]):
    """One request and the answer it waits for."""

    request: Asked
    reply: asyncio.Future[Any]

    def answer(self, answer: msgspec.Struct) -> None:
        """Say `answer`; to one who no longer listens it is said in vain."""
        if not self.reply.done():
            self.reply.set_result(answer)

    @property
    def is_given_up(self) -> bool:
        """Whether whoever asked has stopped waiting."""
        return self.reply.cancelled()


class ScriptedManager:
    """Answers what the test's rules say, and keeps the rest waiting for the test."""

    def __init__(self) -> None:
        self.requests: list[msgspec.Struct] = []
        self.waiting: list[Call[Any]] = []
        self._rules: dict[type, Callable[[Any], msgspec.Struct | None]] = {}

    # What a test does.

    def rule(self, kind: type[Request], answer: Callable[[Request], msgspec.Struct | None]) -> None:
        """Answer requests of this kind by `answer`; what it answers None waits."""
        self._rules[kind] = answer

    def no_rule(self, kind: type[msgspec.Struct]) -> None:
        """Let requests of this kind wait from now on."""
        self._rules.pop(kind, None)

    async def next(self, kind: type[Request]) -> Call[Request]:
        """The next request of this kind that waits for its answer."""
        await until(lambda: self._find(kind), f"a {kind.__name__}")
        call = self._find(kind)
        assert call is not None
        self.waiting.remove(call)
        return call

    def asked(self, kind: type[Request]) -> list[Request]:
        """Every request of this kind so far."""
        return [request for request in self.requests if isinstance(request, kind)]

    def reports(self, task: str) -> list[TaskReport]:
        """Everything it was told of `task`."""
        return [
            report for request in self.asked(ReportRequest) for report in request.tasks if report.task == task
        ]

    def states(self, task: str) -> list[str]:
        """The states it was told of `task`, repetitions left out."""
        states = [report.state.value for report in self.reports(task)]
        return [state for place, state in enumerate(states) if place == 0 or states[place - 1] != state]

    def _find(self, kind: type[msgspec.Struct]) -> Call[Any] | None:
        return next(
            (call for call in self.waiting if isinstance(call.request, kind) and not call.reply.done()), None
        )

    # What a worker asks.

    async def join(self, request: JoinRequest) -> JoinResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, JoinResponse)

    async def offer(self, request: OfferRequest) -> OfferResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, OfferResponse)

    async def sync(self, request: SyncRequest) -> SyncResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, SyncResponse)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, HeartbeatResponse)

    async def leave(self, request: LeaveRequest) -> LeaveResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, LeaveResponse)

    async def claim(self, request: ClaimRequest) -> ClaimResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, ClaimResponse)

    async def release(self, request: ReleaseRequest) -> TaskErrorsResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, TaskErrorsResponse)

    async def report(self, request: ReportRequest) -> TaskErrorsResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, TaskErrorsResponse)

    async def lag(self, request: LagRequest) -> LagResponse | Failure:
        """As `worker.client.group_client.GroupClient`."""
        return await self._ask(request, LagResponse)

    async def _ask(self, request: msgspec.Struct, expected: type[Request]) -> Request | Failure:
        self.requests.append(request)
        rule = self._rules.get(type(request))
        answer = rule(request) if rule is not None else None
        if answer is None:
            call: Call[Any] = Call(request, asyncio.get_running_loop().create_future())
            self.waiting.append(call)
            answer = await call.reply
        assert isinstance(answer, expected | Failure), answer
        return answer


def accept_all(request: ReportRequest | ReleaseRequest) -> TaskErrorsResponse:
    """All is well with every task of a report or a release."""
    names = request.tasks if isinstance(request, ReleaseRequest) else [each.task for each in request.tasks]
    return TaskErrorsResponse(tasks=dict.fromkeys(names, ErrorCode.NONE.value))


def grant_all(token: int = 1) -> Callable[[ClaimRequest], ClaimResponse]:
    """Grants every claimed task under `token`."""
    return lambda request: ClaimResponse(granted=tuple(granted(task, token) for task in request.tasks))
