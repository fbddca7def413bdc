"""The admin client: one answer or one clear error."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.admin_client import AdminClient, UnreachableError, path_of
from cli.client.connection import CONNECT_S
from cli.client.event_stream import EventStream
from configuration.settings import SettingsError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.groups import GroupListResponse
from protocol.request_timeouts import client_wait_s

if TYPE_CHECKING:
    from tests.unit.cli.scripted_manager import ScriptedManager

GROUPS = {"error": "NONE", "groups": []}
NOBODY = "http://127.0.0.1:1"
"""Where nothing listens."""


def test_reads_an_answer(manager: ScriptedManager) -> None:
    """An answer is decoded into its type."""
    manager.on("GET", "/v1/groups", GROUPS)
    assert AdminClient([manager.url]).get("/v1/groups", GroupListResponse).groups == ()


def test_refusal_keeps_its_code(manager: ScriptedManager) -> None:
    """An error answer is raised with its code and message."""
    manager.on("GET", "/v1/groups", {"error": "UNKNOWN_TASK", "message": "no such task"}, 404)
    with pytest.raises(RefusedError, match="no such task") as caught:
        AdminClient([manager.url]).get("/v1/groups", GroupListResponse)
    assert caught.value.failure.code is ErrorCode.UNKNOWN_TASK


def test_next_manager_is_tried(manager: ScriptedManager) -> None:
    """A manager that is not there is passed over."""
    manager.on("GET", "/v1/groups", GROUPS)
    assert AdminClient([NOBODY, manager.url]).get("/v1/groups", GroupListResponse).groups == ()


def test_nobody_answers() -> None:
    """When no manager is there, the error names them all and says what to do."""
    urls = [NOBODY, "http://127.0.0.1:2"]
    with pytest.raises(UnreachableError) as caught:
        AdminClient(urls).get("/v1/groups", GroupListResponse)
    assert all(url in str(caught.value) for url in urls)
    assert "connection refused" in str(caught.value)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float | None]]:
    """How many seconds each connection was given to come about, and then to be answered on."""
    waited: list[tuple[str, float | None]] = []
    connect, request = http.client.HTTPConnection.connect, http.client.HTTPConnection.request

    def connecting(connection: http.client.HTTPConnection) -> None:
        waited.append(("to connect", connection.timeout))
        connect(connection)

    def asking(connection: http.client.HTTPConnection, *asked: Any, **more: Any) -> None:
        waited.append(("to be answered", connection.sock.gettimeout()))
        request(connection, *asked, **more)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", connecting)
    monkeypatch.setattr(http.client.HTTPConnection, "request", asking)
    return waited


@pytest.mark.parametrize("size", [0, 8_000_000])
def test_only_the_answer_has_the_more_time_the_more_is_asked_for(
    manager: ScriptedManager, patience: list[tuple[str, float | None]], size: int
) -> None:
    """A manager that is out of reach is passed over in seconds, however long the list is."""
    manager.on("PUT", "/v1/groups", GROUPS)
    body = "x" * (size - 2) if size else None
    AdminClient([manager.url]).call("PUT", "/v1/groups", body, into=GroupListResponse)
    assert patience == [("to connect", CONNECT_S), ("to be answered", client_wait_s(size))]
    assert CONNECT_S <= 5


def test_managers_share_the_time_that_there_is_for_all(
    manager: ScriptedManager, patience: list[tuple[str, float | None]]
) -> None:
    """Of two that have a second together, each has half of one, to connect too."""
    manager.on("GET", "/v1/groups", GROUPS)
    AdminClient([NOBODY, manager.url]).giving_up_after(1.0).get("/v1/groups", GroupListResponse)
    assert patience == [("to connect", 0.5), ("to connect", 0.5), ("to be answered", 0.5)]


def test_whom_it_waits_for_is_told_when_that_takes_long(
    manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each, and not of one that answers at once."""
    told: list[str] = []
    was_told = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        was_told.set()

    manager.on("GET", "/v1/groups", GROUPS)
    client = AdminClient([manager.url], on_wait=tell)
    client.get("/v1/groups", GroupListResponse)
    assert told == []
    monkeypatch.setattr("cli.client.admin_client.LONG_S", 0.0)
    manager.waits_for = was_told
    client.get("/v1/groups", GroupListResponse)
    assert told == [f"waiting for {manager.url}, for 30 s at most"]


def test_nobody_is_said_to_have_been_sent_what_no_manager_was_reached_for() -> None:
    """Whoever changes something may rely on it: nothing was done."""
    with pytest.raises(UnreachableError) as caught:
        AdminClient([NOBODY, NOBODY]).call("PUT", "/v1/groups", into=GroupListResponse)
    assert not caught.value.was_sent


def test_what_may_have_been_sent_is_not_forgotten_for_the_next_manager(manager: ScriptedManager) -> None:
    """One has heard it and hung up, the next is not there."""
    manager.hangs_up_on = "PUT"
    with pytest.raises(UnreachableError) as caught:
        AdminClient([manager.url, NOBODY]).call("PUT", "/v1/groups", into=GroupListResponse)
    assert caught.value.was_sent


def test_follows_to_the_coordinator(manager: ScriptedManager, other_manager: ScriptedManager) -> None:
    """NOT_COORDINATOR leads to the manager that it names."""
    coordinator = {"id": "b", "url": other_manager.url}
    manager.on("GET", "/v1/groups", {"error": "NOT_COORDINATOR", "coordinator": coordinator}, 421)
    other_manager.on("GET", "/v1/groups", GROUPS)
    assert AdminClient([manager.url]).get("/v1/groups", GroupListResponse).groups == ()


AWAY = {"error": "COORDINATOR_NOT_AVAILABLE", "message": "away"}


def test_a_manager_that_cannot_is_passed_over(
    manager: ScriptedManager, other_manager: ScriptedManager
) -> None:
    """The next one is asked; when none can, the refusal of the last one is told."""
    manager.on("GET", "/v1/groups", AWAY, 503)
    other_manager.on("GET", "/v1/groups", GROUPS)
    assert AdminClient([manager.url, other_manager.url]).get("/v1/groups", GroupListResponse).groups == ()
    with pytest.raises(RefusedError, match="away"):
        AdminClient([manager.url, NOBODY]).get("/v1/groups", GroupListResponse)


def test_nothing_is_created_twice(manager: ScriptedManager, other_manager: ScriptedManager) -> None:
    """A POST that may have come through is not put to another manager."""
    manager.on("POST", "/v1/groups", AWAY, 503)
    other_manager.on("POST", "/v1/groups", GROUPS)
    with pytest.raises(RefusedError, match="away"):
        AdminClient([manager.url, other_manager.url]).call("POST", "/v1/groups", into=GroupListResponse)


@pytest.mark.parametrize("status", [200, 404])
def test_something_else_answers(manager: ScriptedManager, status: int) -> None:
    """A web server that is no manager is called just that."""
    manager.on("GET", "/v1/groups", "<html>", status)
    with pytest.raises(RefusedError, match="not a sparkherd manager"):
        AdminClient([manager.url]).get("/v1/groups", GroupListResponse)


GATEWAY = ["<html>Bad Gateway</html>", "", '{"error": "Bad Gateway"}', '{"error": 502}']


@pytest.mark.parametrize("body", GATEWAY)
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_gateway_s_trouble_hides_what_became_of_the_request(
    manager: ScriptedManager, other_manager: ScriptedManager, status: int, body: str
) -> None:
    """The manager behind it may have done it; another one is asked if there is one, for events too."""
    for method, path in (("PUT", "/v1/groups"), ("GET", "/v1/events")):
        manager.on(method, path, body, status)
    told = f"{manager.url} answered HTTP {status}, not as a manager does"
    with pytest.raises(UnreachableError, match=told) as caught:
        AdminClient([manager.url]).call("PUT", "/v1/groups", into=GroupListResponse)
    assert caught.value.was_sent
    other_manager.on("PUT", "/v1/groups", GROUPS)
    other_manager.on("GET", "/v1/events", 'data: {"id": 1}\n\n')
    client = AdminClient([manager.url, other_manager.url])
    assert client.call("PUT", "/v1/groups", into=GroupListResponse).groups == ()
    assert next(iter(EventStream(client, "/v1/events", None, lambda _: None))) == b'{"id": 1}'
    other_manager.on("PUT", "/v1/groups", AWAY | {"was_sent": False}, 503)
    with pytest.raises(RefusedError, match="away") as refused:
        client.call("PUT", "/v1/groups", into=GroupListResponse)
    assert refused.value.failure.fields["was_sent"]


def test_nothing_is_created_twice_behind_a_gateway(
    manager: ScriptedManager, other_manager: ScriptedManager
) -> None:
    """What it hides may have been done: no other manager is asked for it."""
    manager.on("POST", "/v1/groups", "<html>", 504)
    other_manager.on("POST", "/v1/groups", GROUPS)
    with pytest.raises(UnreachableError, match="answered HTTP 504"):
        AdminClient([manager.url, other_manager.url]).call("POST", "/v1/groups", into=GroupListResponse)
    assert other_manager.requests == []


def test_a_manager_s_own_trouble_is_told_as_it_is(
    manager: ScriptedManager, other_manager: ScriptedManager
) -> None:
    """A bug of a manager is not waited out with the next one."""
    manager.on(
        "PUT", "/v1/groups", {"error": "UNKNOWN_SERVER_ERROR", "message": "a bug", "cause_id": "x"}, 500
    )
    with pytest.raises(RefusedError, match="a bug"):
        AdminClient([manager.url, other_manager.url]).call("PUT", "/v1/groups", into=GroupListResponse)
    assert other_manager.requests == []


def test_an_answer_that_comes_before_all_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager need not hear a body to its end to know that it is too large."""
    answer = json.dumps({"error": "PAYLOAD_TOO_LARGE", "limit_bytes": 9}).encode()
    head = f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(answer)}\r\n\r\n".encode()

    def refuse(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.recv(1)
            client.sendall(head + answer)
            client.shutdown(socket.SHUT_WR)

    def send_and_wait(connection: http.client.HTTPConnection, data: bytes) -> None:
        send(connection, data)
        refusing.join()

    send = http.client.HTTPConnection.send
    monkeypatch.setattr(http.client.HTTPConnection, "send", send_and_wait)
    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = threading.Thread(target=refuse, args=[server])
        refusing.start()
        client = AdminClient([f"http://127.0.0.1:{server.getsockname()[1]}"])
        with pytest.raises(RefusedError) as caught:
            client.call("PUT", "/v1/groups/g/tasks", "x" * 10_000_000, into=GroupListResponse)
    assert caught.value.failure.fields == {"limit_bytes": 9}


@pytest.mark.parametrize("body", ["", json.dumps(GROUPS)])
def test_an_answer_that_leads_elsewhere(
    manager: ScriptedManager, other_manager: ScriptedManager, body: str
) -> None:
    """It is not followed, whatever is in it; a stream does not wait for more. What to set is told."""
    manager.on("GET", "/v1/groups", body, 307)
    manager.on("GET", "/v1/events", body, 307)
    manager.sends["Location"] = f"{other_manager.url}/v1/groups"
    client = AdminClient([manager.url])
    told = f"{manager.url} redirects to {other_manager.url} \\(HTTP 307\\), .* give --manager"
    with pytest.raises(RefusedError, match=told):
        client.get("/v1/groups", GroupListResponse)
    with pytest.raises(RefusedError, match=told):
        next(iter(EventStream(client, "/v1/events", None, lambda _: None)))
    assert other_manager.requests == []


def test_a_redirect_is_passed_over(manager: ScriptedManager, other_manager: ScriptedManager) -> None:
    """The next manager is asked, for events too, and for what is not asked for twice: nobody has heard it."""
    for method, path in (("POST", "/v1/groups"), ("GET", "/v1/events")):
        manager.on(method, path, "", 302)
    other_manager.on("POST", "/v1/groups", GROUPS)
    other_manager.on("GET", "/v1/events", 'data: {"id": 1}\n\n')
    client = AdminClient([manager.url, other_manager.url])
    assert client.call("POST", "/v1/groups", into=GroupListResponse).groups == ()
    assert next(iter(EventStream(client, "/v1/events", None, lambda _: None))) == b'{"id": 1}'


def test_a_redirect_is_told_when_nobody_else_has_more_to_say(
    manager: ScriptedManager, other_manager: ScriptedManager
) -> None:
    """Rather than that the others are not there; a manager that refuses says more."""
    manager.on("PUT", "/v1/groups", "", 302)
    with pytest.raises(RefusedError, match="redirects") as caught:
        AdminClient([NOBODY, manager.url, NOBODY]).call("PUT", "/v1/groups", into=GroupListResponse)
    assert caught.value.failure.fields == {"was_sent": False}
    other_manager.on("PUT", "/v1/groups", AWAY, 503)
    for urls in ([manager.url, other_manager.url], [other_manager.url, manager.url]):
        with pytest.raises(RefusedError, match="away"):
            AdminClient(urls).call("PUT", "/v1/groups", into=GroupListResponse)


@pytest.mark.parametrize("path", ["", "/behind/", "?token=SECRET", "/#SECRET"])
def test_nothing_secret_of_a_manager_s_url_is_told(manager: ScriptedManager, path: str) -> None:
    """Neither is sent, nor of use to whoever reads the error."""
    secret = manager.url.replace("//", "//user:SECRET@") + path
    manager.on("GET", f"{path.rstrip('/') if path.startswith('/b') else ''}/v1/groups", "", 302)
    with pytest.raises(RefusedError, match=f"{manager.url}.* redirects") as caught:
        AdminClient([secret]).get("/v1/groups", GroupListResponse)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(UnreachableError) as gone:
        AdminClient([NOBODY.replace("//", "//user:SECRET@") + path]).get("/v1/groups", GroupListResponse)
    assert "SECRET" not in str(gone.value)


@pytest.mark.parametrize(
    "url", ["ftp://user:SECRET@host", "http://user:SECRET@:1", "http://u:SECRET@h:99999"]
)
def test_nothing_secret_of_a_malformed_url_is_told(url: str) -> None:
    """What is before the host is not."""
    with pytest.raises(SettingsError, match="--manager: expected a URL") as caught:
        AdminClient([url])
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("url", ["foo", "ftp://host", "http://", "http://host:99999"])
def test_malformed_urls(url: str) -> None:
    """What is no URL is refused before anything is sent."""
    with pytest.raises(SettingsError, match="--manager: expected a URL"):
        AdminClient([url])


def test_parts_of_paths_are_quoted() -> None:
    """A name with a slash stays one part of the path."""
    assert path_of("groups", "a/b c") == "/v1/groups/a%2Fb%20c"
