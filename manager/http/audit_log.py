"""The audit log: who asked for what changes something, and what came of it, as lines and as rows."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from aiohttp import web

from manager.http.forwarding import FORWARDED_BY, PASSED_ON
from manager.http.front.reading import host_of
from protocol.errors import ErrorCode
from protocol.messages.audit import AuditEntry
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.access.authorizer import Caller
    from manager.http.endpoint import Endpoint
    from manager.http.front.reading import HttpRequest
    from protocol.errors import Failure

log = structlog.get_logger(__name__)

LONGEST: Final = 500
"""Characters that are kept of what a client has sent."""
NOBODY: Final = "nobody who may"
NOTED: Final = web.RequestKey("noted", str)
NAMED: Final = web.RequestKey("group", str)
BROKEN_OFF: Final = "the connection closed before the answer; it may have been done"
_CHANGING: Final = frozenset({Role.OPERATOR, Role.ADMIN})


class _Result(msgspec.Struct):
    """What an answer says of how it went."""

    error: str = ErrorCode.NONE.value
    cause_id: str | None = None


class AuditLog:
    """Writes down what was asked for. Neither bodies nor tokens are in it.

    Args:
        keep: takes what belongs into the database as well; nothing does by default.
        manager: the id of this one.
    """

    def __init__(self, keep: Callable[[AuditEntry], None] | None = None, manager: str | None = None) -> None:
        self._keep = keep
        self._manager = manager
        self._untold: list[tuple[AuditEntry, str]] = []

    def record(
        self, request: HttpRequest, endpoint: Endpoint, caller: Caller, response: web.StreamResponse
    ) -> None:
        """What came to an answer; one that another manager gave is in the database by that manager."""
        said = _read(response)
        how = {"status": response.status, "why": request.get(NOTED), "cause_id": said.cause_id}
        entry = self._entry(request, endpoint, caller, said.error, **how)
        self._write_down(request, entry, caller)

    def broken_off(self, request: HttpRequest, endpoint: Endpoint, caller: Caller) -> None:
        """What came to no answer, because its connection closed before."""
        code = ErrorCode.UNKNOWN_SERVER_ERROR.value
        why = "; ".join(filter(None, (request.get(NOTED), BROKEN_OFF)))
        self._write_down(request, self._entry(request, endpoint, caller, code, why=why), caller)

    def _write_down(self, request: HttpRequest, entry: AuditEntry, caller: Caller) -> None:
        self._tell(entry, caller.name)
        if PASSED_ON not in request:
            self._store(entry)

    def refused(
        self, request: HttpRequest, endpoint: Endpoint, caller: Caller | None, failure: Failure
    ) -> None:
        """What was asked for by somebody who may not. Strangers are in the log only: a table has an end."""
        code, why = failure.code, _plain(failure.message)
        entry = self._entry(request, endpoint, caller, code.name, status=code.status, why=why)
        self._tell(entry, NOBODY if caller is None else caller.name)
        if caller is not None:
            self._store(entry)

    def _entry(
        self, request: HttpRequest, endpoint: Endpoint, caller: Caller | None, result: str, **how: Any
    ) -> AuditEntry:
        token = None if caller is None else caller.token
        return AuditEntry(
            at_ms=time.time_ns() // 1_000_000,
            who=token.name if token is not None else "anybody",
            token_id=None if token is None else token.token_id,
            operation=endpoint.operation,
            result=result,
            host=host_of(request),
            manager=self._manager,
            forwarded_by=_plain(request.headers.get(FORWARDED_BY)),
            group=_plain(request.match_info.get("group", request.get(NAMED))),
            task=_plain(request.match_info.get("task")),
            member_id=_plain(request.match_info.get("member_id")),
            **how,
        )

    def _tell(self, entry: AuditEntry, who: str) -> None:
        """Soon: the lines of one turn of the loop, one after the other, take a third of their time."""
        if not self._untold:
            asyncio.get_running_loop().call_soon(self._tell_all)
        self._untold.append((entry, who))

    def _tell_all(self) -> None:
        untold, self._untold = self._untold, []
        for entry, who in untold:
            told = {name: value for name in _TOLD if (value := getattr(entry, name)) is not None}
            log.info("audit", who=who, **told)

    def _store(self, entry: AuditEntry) -> None:
        if self._keep is not None:
            self._keep(entry)


def note(request: HttpRequest, how_much: str) -> None:
    """Have the entry about `request` say how much was asked for; for handlers. Nothing that bodies quote."""
    request[NOTED] = how_much


def name_group(request: HttpRequest, group: str) -> None:
    """Have the entry about `request` be about a group that its path does not name; for handlers."""
    request[NAMED] = group


def _plain(text: str | None) -> str | None:
    """What a client has sent, as any database takes it: it need not be a name, nor text at all."""
    if text is None:
        return None
    return text.encode(errors="replace").decode().replace("\0", "?")[:LONGEST]


def is_audited(endpoint: Endpoint) -> bool:
    """Whether it is an admin's action: reading is not, and neither is what members do all the time."""
    return endpoint.role in _CHANGING and endpoint.method != "GET"


_UNTOLD: Final = frozenset({"id", "at_ms", "who", "token_id", "manager"})
"""The line says it already, or the log does."""
_TOLD: Final = tuple(name for name in AuditEntry.__struct_fields__ if name not in _UNTOLD)


def _read(response: web.StreamResponse) -> _Result:
    body = response.body if isinstance(response, web.Response) else None
    try:
        return msgspec.json.decode(body, type=_Result) if isinstance(body, bytes) else _Result()
    except msgspec.DecodeError:
        return _Result()
