from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse
from tests.unit.worker.client.servers import (
    breaks_off,
    hangs_up,
    leads_to,
    never_answers,
    nobody,
    says,
)
from worker.client.answers import refused

if TYPE_CHECKING:
    from tests.unit.worker.client.servers import Cluster, Handler
    from worker.client.transport import Transport

BEAT = HeartbeatRequest(member_id="m", generation_id=1)


async def beat(transport: Transport, url: str, timeout_s: float = 5.0) -> HeartbeatResponse | Failure:
    return await transport.post(url + "/v1/groups/g/heartbeat", BEAT, HeartbeatResponse, timeout_s)


async def test_a_request_and_its_answer(transport: Transport, cluster: Cluster) -> None:
    """Typed on both sides, JSON in between."""
    server = await cluster.start()
    server.group("heartbeat", says(200, tasks_revision=7))
    assert await beat(transport, server.url) == HeartbeatResponse(tasks_revision=7)
    assert server.bodies("heartbeat")[0] == {
        "member_id": "m",
        "generation_id": 1,
        "instance_id": None,
        "wait_ms": 0,
        "tasks_revision": None,
        "check": None,
        "quarantine": None,
    }


async def test_nobody_listens(transport: Transport) -> None:
    """The failure names the URL and the reason, in one line."""
    with nobody() as url:
        answer = await beat(transport, url)
    assert answer == refused(f"{url}: connection refused")
    assert answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_no_password_of_a_url_is_told(transport: Transport) -> None:
    """It may be meant for a proxy, and failures are logged."""
    with nobody() as url:
        answer = await beat(transport, url.replace("://", "://anna:hidden@"))
    assert answer == refused(f"{url}: connection refused")


@pytest.mark.parametrize("handler", [hangs_up, breaks_off])
async def test_a_broken_connection(transport: Transport, cluster: Cluster, handler: Handler) -> None:
    """Before the answer or in the middle of it."""
    server = await cluster.start()
    server.group("heartbeat", handler)
    answer = await beat(transport, server.url)
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.message.startswith(server.url + ": ")
    assert "\n" not in answer.message


async def test_no_answer_in_time(transport: Transport, cluster: Cluster) -> None:
    """A request has an end even if the manager is frozen."""
    server = await cluster.start()
    server.group("heartbeat", never_answers)
    answer = await beat(transport, server.url, timeout_s=0.05)
    assert answer == Failure(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{server.url} gave no answer within 0.05 s"
    )


async def test_a_host_that_does_not_exist(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo in `--manager` is a failure like any other."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # real ones may take half a minute to say so
    answer = await beat(transport, "http://no-such-host.invalid:1")
    assert isinstance(answer, Failure)
    assert answer.message.startswith("http://no-such-host.invalid:1: ")
    assert "Name or service not known" in answer.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_an_answer_that_leads_elsewhere_is_not_followed(
    transport: Transport, cluster: Cluster, status: int
) -> None:
    """The stranger hears nothing of what the worker says; the worker says what is to be set instead."""
    stranger, server = await cluster.start(), await cluster.start()
    stranger.group("heartbeat", says(200, tasks_revision=7))
    server.group("heartbeat", leads_to(stranger.url + "/v1/groups/g/heartbeat", status))
    answer = await beat(transport, server.url)
    assert stranger.asked == []
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.message.startswith(f"{server.url} redirects to {stranger.url} (HTTP {status}), ")
    assert "--manager" in answer.message
