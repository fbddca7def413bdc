"""Turning outcomes into HTTP responses, and every error into the body of PROTOCOL.md §Conventions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec
import structlog
from aiohttp import web

from protocol.errors import RETRY_AFTER_S, ErrorCode, Failure, RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from manager.core.turn import Outcome

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def reply(outcome: Outcome, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """An outcome as a response; `status` is that of success."""
    if isinstance(outcome, Failure):
        return refusal(outcome)
    return web.Response(body=_encode(outcome), status=status, headers=headers, content_type=JSON)


def refusal(failure: Failure) -> web.Response:
    """An error as a response; whoever may retry at once is told when."""
    response = web.Response(body=_encode(failure.body()), status=failure.code.status, content_type=JSON)
    if response.status == ErrorCode.COORDINATOR_NOT_AVAILABLE.status:
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Nothing leaves as anything but a body with a code; a bug leaves as an id that the log has too."""
    try:
        return await handler(request)
    except RefusedError as error:
        return refusal(error.failure)
    except web.HTTPNotFound:
        return refusal(Failure(ErrorCode.NOT_FOUND, f"there is nothing at {request.path}"))
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        response = refusal(
            Failure(ErrorCode.METHOD_NOT_ALLOWED, f"{request.path} takes {allowed}, not {request.method}")
        )
        response.headers["Allow"] = allowed
        return response
    except web.HTTPRequestEntityTooLarge:
        return refusal(Failure(ErrorCode.PAYLOAD_TOO_LARGE, "the body is larger than max_request_bytes"))
    except web.HTTPException:
        raise
    except Exception as error:
        bug_id = uuid.uuid4().hex
        log.exception("bug in a request handler", bug_id=bug_id, path=request.path, error=str(error))
        return refusal(
            Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"a bug; the manager's log has more under {bug_id}")
        )
