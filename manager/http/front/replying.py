"""Turning outcomes into HTTP responses, and every error into the body of protocol §2.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog
from aiohttp import web

from manager.runtime.pending import UNAVAILABLE
from manager.storage.base import StorageError
from protocol.errors import RETRY_AFTER_S, ErrorCode, Failure, RefusedError, unexpected
from telemetry.causes import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from manager.core.turn import Outcome
    from manager.http.front.reading import Request

    Handler = Callable[[Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def reply(outcome: Outcome, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An outcome as a response; `status` is that of success."""
    if isinstance(outcome, Failure):
        return refusal(outcome)
    return web.Response(body=_encode(outcome), status=status, headers=headers, content_type=JSON)


def refusal(failure: Failure) -> web.Response:
    """An error as a response."""
    headers = headers_of(failure)
    return web.Response(
        body=_encode(failure.body()), status=failure.code.status, headers=headers, content_type=JSON
    )


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


async def errors_as_json(request: Request, handler: Handler) -> web.StreamResponse:
    """Nothing leaves as anything but a body with a code."""
    try:
        return await handler(request)
    except RefusedError as error:
        return refusal(error.failure)
    except StorageError:
        return refusal(UNAVAILABLE)
    except web.HTTPNotFound:
        return not_found(request)
    except web.HTTPException as error:
        why = f"{error.reason}: {_printable(error.text or '')}"
        return refusal(Failure(ErrorCode.INVALID_REQUEST, why))
    except Exception as error:  # noqa: BLE001 - a bug in one handler must not take others down
        return bug(request, error)


def not_found(request: Request) -> web.Response:
    """There is no such path."""
    return refusal(Failure(ErrorCode.NOT_FOUND, f"there is nothing at {_path(request)}"))


def not_allowed(request: Request, methods: Iterable[str]) -> web.Response:
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
