from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import HeartbeatResponse
from worker.client.answers import read_answer, redirected


def read(status: int, body: bytes) -> HeartbeatResponse | Failure:
    return read_answer("http://m", status, body, HeartbeatResponse)


def test_an_answer_is_read_and_unknown_fields_are_tolerated() -> None:
    """A newer manager may say more."""
    answer = read(200, b'{"error": "NONE", "tasks_revision": 4, "more": [1]}')
    assert answer == HeartbeatResponse(tasks_revision=4)


def test_a_refusal_keeps_what_its_code_names() -> None:
    """Code, text, and the fields beside them."""
    body = b'{"error": "MEMBER_ID_REQUIRED", "message": "m", "retriable": true, "member_id": "x-1"}'
    assert read(428, body) == Failure(ErrorCode.MEMBER_ID_REQUIRED, "m", {"member_id": "x-1"})


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (502, b"<html>Bad Gateway</html>", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (503, b"", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (404, b"<html>nothing here</html>", ErrorCode.UNKNOWN_SERVER_ERROR),
        (404, b'{"detail": "Not Found"}', ErrorCode.UNKNOWN_SERVER_ERROR),
        (400, b'{"error": "A_CODE_OF_TOMORROW", "message": "m"}', ErrorCode.UNKNOWN_SERVER_ERROR),
        (400, b'{"error": 3, "message": []}', ErrorCode.UNKNOWN_SERVER_ERROR),
        (400, b"\xff\xfe", ErrorCode.UNKNOWN_SERVER_ERROR),
        (200, b"<html>hello</html>", ErrorCode.UNKNOWN_SERVER_ERROR),
        (200, b'{"error": "NONE"}', ErrorCode.UNKNOWN_SERVER_ERROR),
        (200, b'{"error": "NONE", "tasks_revision": "four"}', ErrorCode.UNKNOWN_SERVER_ERROR),
        (200, b"", ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_no_manager_s_answer_is_a_failure(status: int, body: bytes, code: ErrorCode) -> None:
    """Gateways, other services and newer managers: a value, never an exception."""
    answer = read(status, body)
    assert isinstance(answer, Failure)
    assert answer.code is code


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://user:secret@new:8470/v1/x?token=secret", "redirects to https://new:8470 (HTTP 301)"),
        ("/login?secret", "redirects (HTTP 301)"),
        ("http://[secret", "redirects (HTTP 301)"),
        (None, "redirects (HTTP 301)"),
    ],
)
def test_of_a_redirect_only_the_host_is_told(location: str | None, told: str) -> None:
    """The rest of a URL may hold what is not for a log."""
    message = redirected("http://m", 301, location)
    assert message.startswith(f"http://m {told}, ")
    assert "secret" not in message


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://" + "a" * 60_000, "http://" + "a" * 193),
        ("a" * 60_000 + "://b", "a" * 200),
        ("http://else\x9b31m\x1b\x85\u202ewhere:8/", "http://else31mwhere:8"),
    ],
)
def test_of_where_a_redirect_leads_little_and_nothing_invisible_is_told(location: str, told: str) -> None:
    """It goes to a terminal as it is, and whoever answers there has chosen it."""
    assert redirected("http://m", 301, location).startswith(f"http://m redirects to {told} (HTTP 301), ")
