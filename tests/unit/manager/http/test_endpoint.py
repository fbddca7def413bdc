from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import msgspec
import pytest

from manager.core.coordinator import RULES
from manager.http.endpoint import Endpoint
from manager.runtime.loop_share import LoopShare
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.base import Response
from tests.fakes.endpoints import all_endpoints, api_endpoints

if TYPE_CHECKING:
    from aiohttp import web

    from manager.http.endpoint import Plain
    from manager.http.front.reading import HttpRequest

ALLOWED = """
worker      POST   /v1/groups/{group}/join
worker      POST   /v1/groups/{group}/offer
worker      POST   /v1/groups/{group}/sync
worker      POST   /v1/groups/{group}/heartbeat
worker      POST   /v1/groups/{group}/leave
worker      POST   /v1/groups/{group}/claim
worker      POST   /v1/groups/{group}/release
worker      POST   /v1/groups/{group}/report
worker      POST   /v1/groups/{group}/lag
worker   POST   /v1/groups/{group}/checks/fetch
worker   POST   /v1/groups/{group}/checks/report
worker      POST   /v1/groups/{group}/quarantine/fetch
worker      POST   /v1/groups/{group}/quarantine/report
worker      POST   /v1/groups/{group}/offsets/commit
worker      POST   /v1/groups/{group}/offsets/fetch
admin       POST   /v1/groups/{group}/offsets/delete
viewer+     GET    /v1/coordinator
viewer      GET    /v1/managers
viewer      GET    /v1/groups
viewer      GET    /v1/assignors
viewer      GET    /v1/sinks
viewer      GET    /v1/transfers
viewer      GET    /v1/transfers/{transfer}
admin       POST   /v1/transfers
admin       POST   /v1/transfers/{transfer}/cancel
viewer      GET    /v1/events
viewer      GET    /v1/alarms
viewer      GET    /v1/alarms/rules
admin       PUT    /v1/alarms/rules
viewer      GET    /v1/alarms/silences
operator    POST   /v1/alarms/silences
operator    DELETE /v1/alarms/silences/{silence}
viewer      GET    /v1/groups/{group}/alarms
operator    POST   /v1/alarms/acknowledge
operator    POST   /v1/groups/{group}/alarms/acknowledge
admin       GET    /v1/audit
viewer      GET    /v1/alarms/receivers
operator    POST   /v1/alarms/receivers/{receiver}/test
viewer      GET    /v1/groups/{group}
admin       DELETE /v1/groups/{group}
operator    POST   /v1/groups/{group}/rebalance
viewer      GET    /v1/groups/{group}/rebalances
operator    DELETE /v1/groups/{group}/members/{member_id}
operator+   POST   /v1/groups/{group}/members/{member_id}/drain
operator    DELETE /v1/groups/{group}/members/{member_id}/drain
viewer      GET    /v1/groups/{group}/tasks
viewer      GET    /v1/groups/{group}/tasks/{task}
viewer      GET    /v1/groups/{group}/tasks/{task}/status
viewer      GET    /v1/groups/{group}/tasks/{task}/alarms
viewer      GET    /v1/groups/{group}/tasks/{task}/history
viewer      GET    /v1/groups/{group}/moves
viewer      POST   /v1/tasks/validate
admin       POST   /v1/groups/{group}/tasks
admin       PUT    /v1/groups/{group}/tasks
admin       PUT    /v1/groups/{group}/tasks/{task}
admin       DELETE /v1/groups/{group}/tasks/{task}
admin       POST   /v1/groups/{group}/tasks/{task}/reset
admin    POST   /v1/groups/{group}/checks
viewer      GET    /v1/groups/{group}/tasks/{task}/quarantine
viewer      GET    /v1/groups/{group}/tasks/{task}/quarantine/rows/{row}
operator    POST   /v1/groups/{group}/tasks/{task}/quarantine/replay
admin       POST   /v1/groups/{group}/tasks/{task}/quarantine/discard
operator    PUT    /v1/groups/{group}/tasks/{task}/pause
operator    PUT    /v1/groups/{group}/tasks/{task}/resume
operator    PUT    /v1/groups/{group}/tasks/{task}/stop
operator    POST   /v1/groups/{group}/tasks/{task}/restart
anybody     GET    /healthz
anybody     GET    /readyz
viewer      GET    /metrics
anybody     GET    /openapi.json
"""
"""Who may ask for what; `+` is for workers, too."""


def allowed(endpoint: Endpoint) -> str:
    role = endpoint.role.value if endpoint.role is not None else "anybody"
    return role + "+" * endpoint.workers_too


def test_who_may_ask_for_what_is_as_it_was_decided() -> None:
    """A new operation, or a changed role, changes this table."""
    lines = {" ".join(line.split()) for line in ALLOWED.strip().splitlines()}
    found = {f"{allowed(each)} {each.method} {each.path}" for each in api_endpoints()}
    assert found == lines


def test_what_workers_send_again_and_again_is_read_once() -> None:
    """A key that is there twice is looked for in what people send, and never on the way of a heartbeat."""
    looked_at = {each.operation for each in all_endpoints() if each.body is not None and each.is_by_people}
    assert {"putAlarmRules", "putTasks", "createTask", "putTask", "startTransfer"} <= looked_at
    assert looked_at.isdisjoint({"heartbeat", "join", "sync", "claim", "report", "release"})


def test_names_and_places_are_unique() -> None:
    """A client that is generated has one function each."""
    endpoints = all_endpoints()
    assert len({each.operation for each in endpoints}) == len(endpoints)
    assert len({(each.method, each.path) for each in endpoints}) == len(endpoints)


def test_every_request_of_the_core_that_is_a_body_has_an_endpoint() -> None:
    """What the core can be asked by members, somebody can send."""
    bodies = {each.body for each in all_endpoints()}
    assert {kind for kind in RULES if kind.__module__.startswith("protocol.")} <= bodies


def test_only_what_members_send_is_not_forwarded() -> None:
    """They look for their coordinator themselves, and are told where it is."""
    for each in all_endpoints():
        assert each.is_forwarded is ("{group}" in each.path and allowed(each) != "worker")


def test_possible_errors_follow_from_the_shape_and_the_rules() -> None:
    """In the order of the contract's table."""
    by_name = {each.operation: each for each in all_endpoints()}
    common = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert by_name["isAlive"].possible_errors == common
    delete = by_name["deleteTask"].possible_errors
    assert [code.name for code in delete] == [
        "INVALID_REQUEST",
        "INVALID_GROUP_ID",
        "GROUP_ID_NOT_FOUND",
        "UNKNOWN_TASK",
        "TASK_UNDER_TRANSFER",
        "PRECONDITION_FAILED",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "UNAUTHENTICATED",
        "GROUP_AUTHORIZATION_FAILED",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNKNOWN_SERVER_ERROR",
    ]
    assert ErrorCode.PAYLOAD_TOO_LARGE in by_name["putTask"].possible_errors


class _Request:
    """As much of a request as a path without names needs."""

    def __init__(self) -> None:
        self.match_info: dict[str, str] = {}
        self.share = LoopShare()


def request() -> HttpRequest:
    return cast("HttpRequest", _Request())


@pytest.mark.parametrize("raised", [True, False])
async def test_fields_of_every_error_are_added_whichever_way_it_comes(*, raised: bool) -> None:
    """An error that knows better keeps its own."""
    known = Failure(ErrorCode.INVALID_REQUEST, "so", {"member_id": "m"})

    async def refuse(_: Plain) -> Failure:
        if raised:
            raise RefusedError(known.code, known.message, **known.fields)
        return known

    fields = {"member_id": "", "generation_id": -1}
    endpoint = Endpoint("GET", "/x", "x", "x", refuse, role=None, error_fields=fields)
    expected = {"member_id": "m", "generation_id": -1}
    assert (await answer_of(endpoint)).items() >= expected.items()


async def answer_of(endpoint: Endpoint) -> dict[str, Any]:
    try:
        response = await endpoint.serve(request())
    except RefusedError as error:
        return error.failure.body()
    body: dict[str, Any] = msgspec.json.decode(cast("bytes", cast("web.Response", response).body))
    return body


async def test_the_first_status_of_success_is_an_outcomes() -> None:
    """And not a failure's."""

    async def well(_: Plain) -> Response:
        return Response()

    async def ill(_: Plain) -> Failure:
        return Failure(ErrorCode.UNKNOWN_TASK, "no")

    for handler, status in ((well, 202), (ill, 404)):
        endpoint = Endpoint("GET", "/x", "x", "x", handler, role=None, success=(202, 200))
        assert (await endpoint.serve(request())).status == status


async def test_a_bug_is_not_dressed_up() -> None:
    """It passes on to where it gets its id."""

    async def broken(_: Plain) -> NoReturn:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Endpoint("GET", "/x", "x", "x", broken, role=None).serve(request())


async def test_what_comes_when_the_line_is_full_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, as something to try again: nothing that waits grows without end."""
    monkeypatch.setattr("manager.runtime.loop_share.MOST_WAITING", 0)
    endpoint = next(each for each in all_endpoints() if each.operation and not each.urgent)
    share = LoopShare(lambda: 0.0)
    monkeypatch.setattr(share, "admits", lambda **_: False)
    request = cast("HttpRequest", type("Request", (), {"share": share})())
    with pytest.raises(RefusedError) as refused:
        await asyncio.wait_for(endpoint.serve(request), 5)
    assert refused.value.failure.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_supervisor_is_answered_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the manager otherwise, which has nothing but much to do."""
    monkeypatch.setattr("manager.runtime.loop_share.MOST_WAITING", 0)
    share = LoopShare(lambda: 0.0)
    monkeypatch.setattr(share, "admits", lambda **_: False)
    health = [each for each in all_endpoints() if each.path in {"/healthz", "/readyz"}]
    asked = cast("HttpRequest", type("Request", (), {"share": share, "match_info": {}, "query": {}})())
    for endpoint in health:

        async def well(_: Plain) -> Response:
            return Response()

        answer = await asyncio.wait_for(replace(endpoint, handler=well).serve(asked), 5)
        assert answer.status == 200
    assert len(health) == 2
