"""Taking requests apart: names, bodies, query values; a `RefusedError` says what is wrong and where."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from manager.http.nesting import MAX_DEPTH, is_deeper_than
from protocol.errors import ErrorCode, RefusedError
from protocol.names import is_legal_name

T = TypeVar("T")


def group_of(request: web.Request) -> str:
    """The group id of the path.

    Raises:
        RefusedError: INVALID_GROUP_ID.
    """
    name = request.match_info["group"]
    if not is_legal_name(name):
        raise RefusedError(
            ErrorCode.INVALID_GROUP_ID,
            "a group id is 1 to 249 characters of [A-Za-z0-9._-], not `.` or `..`",
        )
    return name


def host_of(request: web.Request) -> str:
    """The address the request came from."""
    return request.remote or ""


async def body_of(request: web.Request, decoder: msgspec.json.Decoder[T]) -> T:
    """The body as the decoder's type.

    Raises:
        RefusedError: INVALID_REQUEST that names the field.
    """
    raw = await read_body(request)
    try:
        if not raw.isascii():
            raw.decode()
        body = decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, _plainly(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    if is_deeper_than(MAX_DEPTH, raw):
        raise _too_deep()
    return body


async def read_body(request: web.Request) -> bytes:
    """The body as it came.

    Raises:
        RefusedError: PAYLOAD_TOO_LARGE, or INVALID_REQUEST when it does not come to its end.
    """
    if is_announced_too_large(request):
        raise _too_large()
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None
    except (web.RequestPayloadError, HttpProcessingError) as error:
        reason = " ".join(str(error).split())
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the body cannot be read: {reason}") from None


def is_announced_too_large(request: web.Request) -> bool:
    """Whether the body is too large by its own word, and need not be read to know it."""
    return (request.content_length or 0) > request.client_max_size


def _too_large() -> RefusedError:
    return RefusedError(ErrorCode.PAYLOAD_TOO_LARGE, "the body is larger than max_request_bytes")


def _too_deep() -> RefusedError:
    return RefusedError(
        ErrorCode.INVALID_REQUEST,
        f"the body is nested too deeply: more than {MAX_DEPTH} brackets in brackets",
    )


def _plainly(error: msgspec.ValidationError) -> str:
    """`member_id: Expected `str`, got `int`` rather than the library's `... - at `$.member_id``."""
    text, separator, path = str(error).partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    return f"{place}: {text}" if separator and place else text


def count_of(request: web.Request, name: str, default: int, at_most: int) -> int:
    """A whole number of the query string.

    Raises:
        RefusedError: INVALID_REQUEST.
    """
    text = request.query.get(name)
    if text is None:
        return default
    if (
        not text.isascii()
        or not text.isdigit()
        or len(text) > len(str(at_most))
        or not 1 <= int(text) <= at_most
    ):
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{name}: expected a whole number from 1 to {at_most}")
    return int(text)
