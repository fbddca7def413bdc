"""What admins did, as it is told: `GET /v1/audit` (docs/security.md)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from protocol.messages.base import MAX_INT, Response
from protocol.names import Name


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action, or a try of somebody who may not; what does not apply is left out.

    `id` is its place in the order in which entries were stored, from 1; `at_ms` (since 1970) is when it was
    answered, by the clock of `manager`. `who` is the name of the token `token_id`, `operation` is called as
    in the description of the API, `result` is an error code, `why` why it was refused, or how much was meant.
    """

    id: int = 0
    at_ms: int
    who: str
    operation: str
    result: str
    token_id: str | None = None
    group: str | None = None
    task: str | None = None
    member_id: str | None = None
    status: int | None = None
    why: str | None = None
    cause_id: str | None = None
    host: str | None = None
    manager: str | None = None
    forwarded_by: str | None = None


class AuditListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are asked for: at most `limit` of those after `after`, of one person or group."""

    after: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT, description="the id of an entry")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    who: Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$", description="the name of a token")] | None = None
    group: Name | None = None


class AuditListResponse(Response, frozen=True, kw_only=True):
    """Entries in order; `next` is what to ask `after` if there are more."""

    entries: tuple[AuditEntry, ...]
    next: int | None = None
