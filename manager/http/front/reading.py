"""Taking requests apart: names, bodies, query values; a `RefusedError` says what is wrong and where."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from manager.http.front.duplicate_keys import duplicate_key
from manager.http.front.nesting import MAX_DEPTH, is_deeper_than
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import faulty_place
from protocol.names import LEGAL, PATTERN, is_legal_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.core.member import Connection
    from manager.runtime.loop_share import LoopShare

T = TypeVar("T", bound=msgspec.Struct)

LOOKED_AT_ONCE: Final = 65_536
"""Bytes of a body, which take two milliseconds."""
LONGEST_PLACE: Final = 500
"""Characters; a key may have as many as a body."""
_NO_NAME = f"Expected `str` matching regex {PATTERN!r}"
"""What the library says of a text that is no name."""


class HttpRequest(web.BaseRequest):
    """A request as it came over a connection of ours.

    Without slots, what is set on many requests that come in at once would cost each a dictionary of its own.

    Attributes:
        match_info: the names in its path.
        link: its connection, as the group core knows it.
        common_headers: what every answer has, for one that is sent bit by bit.
        share: what it may take of a pass of the event loop.
    """

    __slots__ = ("common_headers", "link", "match_info", "share")

    match_info: Mapping[str, str]
    link: Connection
    common_headers: Mapping[str, str]
    share: LoopShare


def check_names(request: HttpRequest) -> None:
    """Look at the names in the path.

    Raises:
        RefusedError: INVALID_GROUP_ID, or INVALID_REQUEST for a task or a transfer that cannot be called so.
    """
    names = request.match_info
    if "group" in names and not is_legal_name(names["group"]):
        raise RefusedError(ErrorCode.INVALID_GROUP_ID, f"a group id is {LEGAL}")
    if "task" in names and not is_legal_name(names["task"]):
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"task: a task's name is {LEGAL}")
    if "transfer" in names and not is_legal_name(names["transfer"]):
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"transfer: a transfer's id is {LEGAL}")


def host_of(request: HttpRequest) -> str:
    """The address the request came from, which a socket that was reset does not know any more."""
    return request.link.host


def decode_body(raw: bytes, kind: type[T]) -> T:
    """A body as a `kind`.

    Raises:
        RefusedError: INVALID_REQUEST that names the field.
    """
    try:
        if not raw.isascii():
            raw.decode()
        body: T = _decoder_of(kind).decode(raw)
    except msgspec.ValidationError as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, plainly(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    if is_deeper_than(MAX_DEPTH, raw):
        raise _too_deep()
    return body


async def check_keys(raw: bytes) -> None:
    """Look for a key that is there twice, of which only the last one would count; of a long body in a thread.

    Raises:
        RefusedError: INVALID_REQUEST that names the key.
    """
    at_once = len(raw) <= LOOKED_AT_ONCE
    place = duplicate_key(raw) if at_once else await asyncio.to_thread(duplicate_key, raw)
    if place is not None:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{place[:LONGEST_PLACE]}: the key is there twice")


@cache
def _decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


def body_at_hand(request: HttpRequest) -> bytes | None:
    """The body if all of it has come in already, as most bodies have; None if it is to be waited for.

    Raises:
        RefusedError: PAYLOAD_TOO_LARGE.
    """
    content = request.content
    if not content.is_eof() or content.exception() is not None:
        return None
    body = content.read_nowait()
    if len(body) > request.client_max_size:
        raise _too_large(f"has {len(body)} bytes", request)
    return body


async def read_body(request: HttpRequest) -> bytes:
    """The body as it came.

    Raises:
        RefusedError: PAYLOAD_TOO_LARGE, or INVALID_REQUEST when it does not come to its end.
    """
    if is_announced_too_large(request):
        raise _too_large(f"has {request.content_length} bytes", request)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(f"has more than {request.client_max_size} bytes", request) from None
    except (web.RequestPayloadError, HttpProcessingError) as error:
        reason = " ".join(str(error).split())
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the body cannot be read: {reason}") from None


def is_announced_too_large(request: HttpRequest) -> bool:
    """Whether the body is too large by its own word, and need not be read to know it."""
    return (request.content_length or 0) > request.client_max_size


def _too_large(what: str, request: HttpRequest) -> RefusedError:
    limit = request.client_max_size
    message = f"the body {what}, and this manager takes {limit} at most (--max-request-bytes)"
    return RefusedError(ErrorCode.PAYLOAD_TOO_LARGE, message, limit_bytes=limit)


def _too_deep() -> RefusedError:
    return RefusedError(
        ErrorCode.INVALID_REQUEST,
        f"the body is nested too deeply: more than {MAX_DEPTH} brackets in brackets",
    )


def plainly(error: msgspec.ValidationError) -> str:
    """`member_id: Expected `str`, got `int`` rather than the library's `... - at `$.member_id``."""
    path, text = faulty_place(error)
    place, text = path.lstrip("."), text.replace(_NO_NAME, f"expected {LEGAL}")
    return f"{place}: {text}" if place else text
