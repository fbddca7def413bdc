"""Reading a manager's answer: the expected body, or why there is none."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from protocol.errors import ErrorCode, Failure

Body = TypeVar("Body", bound=msgspec.Struct)
MOST_OF_A_PLACE: Final = 200
"""Characters: whoever answers has chosen them, and they go to a terminal and a log."""
_REFUSED = "connection_refused"


def read_answer(
    origin: str, status: int, body: bytes, expected: type[Body], location: str | None = None
) -> Body | Failure:
    """What came back from `origin`: a body of type `expected`, or a `Failure`.

    An answer that is no manager's is a failure too: a gateway's 5xx means that no manager was reached.
    `location` is the header of that name.
    """
    if is_redirect(status):
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, redirected(origin, status, location))
    if status >= HTTPStatus.BAD_REQUEST:
        return _read_refusal(origin, status, body)
    try:
        return msgspec.json.decode(body, type=expected)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"{origin} does not answer as a manager: {error}")


def is_redirect(status: int) -> bool:
    """Whether an answer leads elsewhere. No manager sends one to whom it serves, so nobody follows it."""
    return HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST


def redirected(origin: str, status: int, location: str | None) -> str:
    """What there is to say of an answer of `origin` that leads to `location`: only the host of that."""
    to = _origin_of(location or "")
    return (
        f"{origin} redirects{to and f' to {to}'} (HTTP {status}), and no redirect is followed: "
        "give --manager, or that manager's --advertise, the URL at which the manager itself answers"
    )


def _origin_of(url: str) -> str:
    """`http://HOST:PORT`, its printable beginning, without the user; or nothing."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    place = parts.netloc.rpartition("@")[2]
    if not parts.scheme or not place:
        return ""
    return "".join(filter(str.isprintable, f"{parts.scheme}://{place}"))[:MOST_OF_A_PLACE]


def unreachable(message: str) -> Failure:
    """Nobody answered."""
    return Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


def refused(message: str) -> Failure:
    """Nobody listens there: a manager that ended, and took its socket with it."""
    return Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message, {_REFUSED: True})


def is_refused(failure: Failure) -> bool:
    """Whether `failure` is one of `refused`: not of a manager that is frozen, or out of reach."""
    return failure.fields.get(_REFUSED) is True


def _read_refusal(origin: str, status: int, body: bytes) -> Failure:
    fields = _fields(body)
    code = fields.pop("error", None)
    message = fields.pop("message", "")
    fields.pop("retriable", None)
    if isinstance(code, str) and isinstance(message, str):
        return Failure(ErrorCode.of(code), message, fields)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return unreachable(f"{origin} answered HTTP {status}")
    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"{origin} answered HTTP {status}, not as a manager does")


def _fields(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
