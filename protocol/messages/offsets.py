"""Progress that a group keeps with the manager (protocol §3.5)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from protocol.messages.base import NO_GENERATION, Generation, Key, Request, Response, Text, null
from protocol.names import Name


class CommittedOffset(msgspec.Struct, frozen=True):
    """An offset as it is stored: any JSON value, and a short text beside it."""

    offset: msgspec.Raw = msgspec.field(default_factory=null)
    metadata: str = ""


class OffsetToCommit(msgspec.Struct, frozen=True):
    """An offset as it is sent; the value itself is required."""

    offset: msgspec.Raw
    metadata: Text = ""


class CommitOffsetsRequest(Request, frozen=True, kw_only=True):
    """Store offsets, fenced by the generation; generation -1 is for clients outside any membership."""

    offsets: dict[Key, OffsetToCommit]
    member_id: str = ""
    instance_id: Name | None = None
    generation_id: Generation = NO_GENERATION


class OffsetErrorsResponse(Response, frozen=True, kw_only=True):
    """One error code a key."""

    offsets: Mapping[str, str]


class FetchOffsetsRequest(Request, frozen=True, kw_only=True):
    """Read offsets; `keys` null means all of them."""

    keys: tuple[str, ...] | None


class FetchOffsetsResponse(Response, frozen=True, kw_only=True):
    """The offset of each asked key; an unknown one has a null offset."""

    offsets: dict[str, CommittedOffset]


class DeleteOffsetsRequest(Request, frozen=True, kw_only=True):
    """Forget offsets of an Empty group."""

    keys: tuple[str, ...]
