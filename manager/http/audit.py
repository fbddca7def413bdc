"""The audit log: who asked for what changes something, and what came of it. One line of the log each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from aiohttp import web

from manager.http.forwarding import FORWARDED_BY
from manager.http.reading import host_of
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.access.access import Caller
    from manager.http.endpoints import Endpoint
    from protocol.errors import Failure

log = structlog.get_logger(__name__)

SUBJECTS: Final = ("group", "task", "member_id")
_CHANGING: Final = frozenset({Role.OPERATOR, Role.ADMIN})


class _Said(msgspec.Struct):
    """What an answer says of how it went."""

    error: str = "NONE"
    cause_id: str | None = None


def is_audited(endpoint: Endpoint) -> bool:
    """Whether it is an admin's action: reading is not, and neither is what members do all the time."""
    return endpoint.role in _CHANGING and endpoint.method != "GET"


def record(request: web.Request, endpoint: Endpoint, caller: Caller, response: web.StreamResponse) -> None:
    """What was asked for, and came to an answer. Neither bodies nor tokens are in it."""
    said = _read(response)
    _write(request, endpoint, caller.name, said.error, status=response.status, cause_id=said.cause_id)


def record_refusal(request: web.Request, endpoint: Endpoint, failure: Failure) -> None:
    """What was asked for by somebody who may not; the message names the token, if it is known."""
    _write(request, endpoint, None, failure.code.name, status=failure.code.status, why=failure.message)


def _write(request: web.Request, endpoint: Endpoint, who: str | None, result: str, **more: Any) -> None:
    about = {name: request.match_info[name] for name in SUBJECTS if name in request.match_info}
    more = {**about, **more, "forwarded_by": request.headers.get(FORWARDED_BY)}
    log.info(
        "audit",
        who=who or "nobody who may",
        host=host_of(request),
        operation=endpoint.operation,
        result=result,
        **{name: value for name, value in more.items() if value is not None},
    )


def _read(response: web.StreamResponse) -> _Said:
    body = response.body if isinstance(response, web.Response) else None
    try:
        return msgspec.json.decode(body, type=_Said) if isinstance(body, bytes) else _Said()
    except msgspec.DecodeError:
        return _Said()
