"""Turning outcomes into HTTP responses, and every error into the body of protocol §2.1."""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import msgspec
import structlog
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http import SERVER_SOFTWARE

from manager.runtime.replies import UNAVAILABLE
from manager.storage.base import StorageError
from protocol.errors import RETRY_AFTER_S, ErrorCode, Failure, RefusedError, unexpected
from telemetry.cause_ids import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from aiohttp.abc import AbstractStreamWriter

    from manager.core.turn import Outcome
    from manager.http.front.reading import HttpRequest

    Handler = Callable[[HttpRequest], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


class JsonResponse(web.Response):
    """An answer in JSON, which leaves in one piece.

    aiohttp's own looks at each answer for compression, chunks, cookies and a body that is a file. Ours have
    none of these, and looking was a seventh of the time of a heartbeat.

    Attributes:
        is_sent: whether it was sent so, and nothing is left for aiohttp to do.
    """

    is_sent = False

    def __init__(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body=_encode(body), status=status, headers=headers, content_type=JSON)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send it, if that is all there is to do; what is special about a request is left to aiohttp."""
        is_usual = request.keep_alive and request.version == HttpVersion11 and request.method != "HEAD"
        if not is_usual or self.keep_alive is False:
            return await super().prepare(request)
        self.is_sent = True
        body, headers, writer = cast("bytes", self.body), self.headers, request.writer
        headers[hdrs.CONTENT_LENGTH] = str(len(body))
        headers[hdrs.DATE] = _date(int(time.time()))
        headers[hdrs.SERVER] = SERVER_SOFTWARE
        await writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", headers)
        await writer.write_eof(body)
        self.body = None
        headers.clear()
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """The end of it, unless it is sent already."""
        if not self.is_sent:
            await super().write_eof(data)

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection goes on."""
        return self.is_sent or super().keep_alive


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    """A second since 1970 as a header has it."""
    return formatdate(second, usegmt=True)


def reply(outcome: Outcome, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An outcome as a response; `status` is that of success."""
    if isinstance(outcome, Failure):
        return refusal(outcome)
    return JsonResponse(outcome, status, headers)


def refusal(failure: Failure) -> web.Response:
    """An error as a response."""
    return JsonResponse(failure.body(), failure.code.status, headers_of(failure))


def headers_of(failure: Failure) -> dict[str, str]:
    """Whoever may retry at once is told when; whoever has no token, what kind of it is needed."""
    if failure.code is ErrorCode.UNAUTHENTICATED:
        return {"WWW-Authenticate": 'Bearer realm="sparkherd"'}
    if failure.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        return {"Retry-After": str(failure.fields.get("retry_after_s", RETRY_AFTER_S))}
    waits = failure.code.status == ErrorCode.COORDINATOR_NOT_AVAILABLE.status
    return {"Retry-After": str(RETRY_AFTER_S)} if waits else {}


def bug(request: web.BaseRequest, error: BaseException | None) -> web.Response:
    """A bug leaves as an id that the log has too."""
    cause_id = new_cause_id()
    known = getattr(request, "match_info", {})
    log.error(
        "bug in a request handler",
        cause_id=cause_id,
        group=known.get("group"),
        task=known.get("task"),
        member=known.get("member_id"),
        path=_path(request),
        exc_info=error,
    )
    return refusal(unexpected(cause_id))


def error_as_json(request: HttpRequest, error: Exception) -> web.Response:
    """What a handler raised, as a body with a code: nothing leaves as anything else."""
    match error:
        case RefusedError():
            return refusal(error.failure)
        case StorageError():
            return refusal(UNAVAILABLE)
        case web.HTTPNotFound():
            return not_found(request)
        case web.HTTPException():
            why = f"{error.reason}: {_printable(error.text or '')}"
            return refusal(Failure(ErrorCode.INVALID_REQUEST, why))
    return bug(request, error)


def not_found(request: HttpRequest) -> web.Response:
    """There is no such path."""
    return refusal(Failure(ErrorCode.NOT_FOUND, f"there is nothing at {_path(request)}"))


def not_allowed(request: HttpRequest, methods: Iterable[str]) -> web.Response:
    """The path takes these `methods` only."""
    allowed = ", ".join(sorted(methods))
    message = f"{_path(request)} takes {allowed}, not {request.method}"
    response = refusal(Failure(ErrorCode.METHOD_NOT_ALLOWED, message))
    response.headers["Allow"] = allowed
    return response


def _path(request: web.BaseRequest) -> str:
    return _printable(request.path)


def _printable(text: str) -> str:
    """`text` without what UTF-8 has no bytes for: a path may come as any bytes."""
    return text.encode(errors="backslashreplace").decode()
