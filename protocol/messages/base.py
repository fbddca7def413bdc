"""What all bodies share."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from protocol.errors import ErrorCode

MAX_INT = 2**53 - 1
"""The largest integer every JSON reader keeps exactly."""

Millis = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
PositiveMillis = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
Whole = Annotated[int, msgspec.Meta(ge=-MAX_INT, le=MAX_INT)]
"""A number whose bounds have a code of their own: the core looks at it."""
Generation = Whole
Token = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
Revision = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]

BatchId = Annotated[int, msgspec.Meta(ge=-1, le=MAX_INT)]

_NO_NUL = r"^[^\u0000]*$"
Text = Annotated[
    str, msgspec.Meta(pattern=_NO_NUL, description="any text without NUL, which databases refuse")
]
Label = Annotated[
    str, msgspec.Meta(pattern=_NO_NUL, max_length=249, description="up to 249 characters, none of them NUL")
]
Key = Annotated[
    str, msgspec.Meta(pattern=_NO_NUL, max_length=512, description="up to 512 characters, none of them NUL")
]
"""What part of a database's key can be: PostgreSQL indexes 2,704 bytes, a character may take four."""

NO_GENERATION = -1


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A body sent to the manager. Unknown fields are ignored, as the contract asks."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A body the manager answers with; `error` is NONE unless a `Failure` takes its place."""

    error: str = ErrorCode.NONE.value


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a list that is sorted by name; all of it unless `limit` is there.

    `after` is the `next` of the page before, or any name: what comes after it is told.
    """

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    after: str | None = None


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A refusal as it is sent; which of the fields after the first three there are depends on the code."""

    error: str
    message: str
    retriable: bool
    coordinator: dict[str, str] | msgspec.UnsetType | None = msgspec.UNSET
    member_id: str | msgspec.UnsetType = msgspec.UNSET
    generation_id: int | msgspec.UnsetType = msgspec.UNSET
    problems: tuple[dict[str, str], ...] | msgspec.UnsetType = msgspec.UNSET
    etag: str | msgspec.UnsetType | None = msgspec.UNSET
    cause_id: str | msgspec.UnsetType = msgspec.UNSET
    limit_bytes: int | msgspec.UnsetType = msgspec.UNSET
    retry_after_s: int | msgspec.UnsetType = msgspec.UNSET
    was_sent: bool | msgspec.UnsetType = msgspec.UNSET


def decode_opaque(value: msgspec.Raw) -> Any:
    """The JSON value inside a field that the manager passes on unread (metadata, assignment, offset)."""
    return msgspec.json.decode(value)


def faulty_place(error: msgspec.ValidationError) -> tuple[str, str]:
    """Where the fault is, and what it is: the library's `... - at `$.member_id`` in two pieces."""
    text, _, path = str(error).partition(" - at `$")
    return path.rstrip("`"), text


def encode_opaque(value: Any) -> msgspec.Raw:
    """`value` as a field that is passed on unread."""
    return msgspec.Raw(msgspec.json.encode(value))


NULL = msgspec.Raw(b"null")


def null() -> msgspec.Raw:
    """The default of a field that is passed on unread; a value itself could not be shown in a schema."""
    return NULL
