"""What members send: one handler shape for every request whose body goes to the group as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from manager.http.reading import body_of, group_of, host_of
from manager.http.replying import refusal, reply
from protocol.errors import Failure, RefusedError
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    SyncRequest,
    join_failure_fields,
)
from protocol.messages.offsets import CommitOffsetsRequest, DeleteOffsetsRequest, FetchOffsetsRequest
from protocol.messages.ownership import ClaimRequest, ReleaseRequest, ReportRequest

if TYPE_CHECKING:
    from manager.http.replying import Handler
    from manager.runtime.runtime import Runtime
    from protocol.messages.base import Request

BODIES: dict[str, type[Request]] = {
    "heartbeat": HeartbeatRequest,
    "sync": SyncRequest,
    "leave": LeaveRequest,
    "offsets/commit": CommitOffsetsRequest,
    "offsets/fetch": FetchOffsetsRequest,
    "offsets/delete": DeleteOffsetsRequest,
    "claim": ClaimRequest,
    "release": ReleaseRequest,
    "report": ReportRequest,
}


def routes(runtime: Runtime) -> list[web.RouteDef]:
    """POST /v1/groups/{group}/..."""
    calls = {operation: _call(runtime, body) for operation, body in BODIES.items()}
    calls["join"] = _join_call(runtime)
    return [web.post(f"/v1/groups/{{group:[^/]*}}/{operation}", call) for operation, call in calls.items()]


def _call(runtime: Runtime, body: type[Request]) -> Handler:
    decoder = msgspec.json.Decoder(body)

    async def call(request: web.Request) -> web.Response:
        name = group_of(request)
        return reply(await runtime.ask(name, await body_of(request, decoder), host_of(request)))

    return call


def _join_call(runtime: Runtime) -> Handler:
    """As `_call`; but every error of a join carries the generation and the id (PROTOCOL.md §3.1)."""
    decoder = msgspec.json.Decoder(JoinRequest)

    async def call(request: web.Request) -> web.Response:
        try:
            name = group_of(request)
            join = await body_of(request, decoder)
        except RefusedError as error:
            return refusal(_of_a_join(error.failure, ""))
        outcome = await runtime.ask(name, join, host_of(request))
        if isinstance(outcome, Failure):
            outcome = _of_a_join(outcome, join.member_id)
        return reply(outcome)

    return call


def _of_a_join(failure: Failure, member_id: str) -> Failure:
    return msgspec.structs.replace(failure, fields=join_failure_fields(member_id) | failure.fields)
