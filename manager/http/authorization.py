"""Who may ask: stands before every handler, and before requests are forwarded to another manager."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from aiohttp import web

from manager.access.authorizer import ANYBODY, MEMBERS, Caller, bearer_of
from manager.http.audit_log import AuditLog, is_audited
from manager.http.front.reading import host_of
from manager.http.front.replying import error_as_json, refusal
from manager.http.login_page import login_page
from protocol.errors import ErrorCode, Failure
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from manager.access.authorizer import Authorizer
    from manager.access.rates import Rates
    from manager.http.endpoint import Endpoint
    from manager.http.front.reading import HttpRequest
    from manager.http.front.replying import Handler

CALLER: Final = web.RequestKey("caller", Caller)
JUDGE: Final = web.RequestKey("judge", partial)
COOKIE: Final = "sparkherd_session"
"""Holds the token of a browser that has logged in; scripts cannot read it, other sites cannot send it."""
LOGIN: Final = "/login"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PAGE = "text/html"


class Authorization:
    """Asks the tokens that are known; see `manager.access`.

    Args:
        access: who may ask for what.
        rates: how often; what members ask is not counted, unless they are not let in.
        audit: writes down what was done, and what was tried.
        now: seconds on a clock that never goes back.
    """

    def __init__(
        self,
        access: Authorizer,
        rates: Rates | None = None,
        audit: AuditLog | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._rates = rates
        self._audit = audit or AuditLog()
        self._now = now

    def wrap(self, endpoint: Endpoint, handler: Handler) -> Handler:
        """`handler` behind the checks of who asks, and how often."""
        if endpoint.role is None and not endpoint.counted:
            return handler
        guarded = self._guarded(endpoint, handler)
        if endpoint.roles != MEMBERS:
            return guarded

        def handle_of_member(request: HttpRequest) -> Awaitable[web.StreamResponse]:
            """Most of what a manager ever hears, and neither counted nor audited: a quick look will do."""
            access, shown = self._access, request.headers.get("Authorization")
            is_certified = not access.members_show_certificates or _is_certified(request)
            admitted = access.admits_member(shown, request.match_info["group"], is_certified=is_certified)
            admitted = admitted and not comes_from_elsewhere(request)
            return handler(request) if admitted else guarded(request)

        return handle_of_member

    def _guarded(self, endpoint: Endpoint, handler: Handler) -> Handler:
        audited = is_audited(endpoint)

        async def handle(request: HttpRequest) -> web.StreamResponse:
            verdict = self._count(request, endpoint, self._judge(request, endpoint))
            if isinstance(verdict, Failure):
                if audited and verdict.code is not ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                    self._audit.refused(request, endpoint, self._known(request), verdict)
                return _turn_away(request, endpoint, verdict)
            request[CALLER] = verdict
            request[JUDGE] = partial(self._judge, request, endpoint)
            if not audited:
                return await handler(request)
            try:
                response = await handler(request)
            except asyncio.CancelledError:
                self._audit.broken_off(request, endpoint, verdict)
                raise
            except Exception as error:  # noqa: BLE001 - what came of it is written down, whatever it is
                response = error_as_json(request, error)
            self._audit.record(request, endpoint, verdict, response)
            return response

        return handle

    def _count(self, request: HttpRequest, endpoint: Endpoint, verdict: Caller | Failure) -> Caller | Failure:
        """The verdict, unless the client has had too many, good or bad: nobody can try tokens out."""
        is_member = Role.WORKER in endpoint.roles and isinstance(verdict, Caller)
        if self._rates is None or is_member:
            return verdict
        token = verdict.token if isinstance(verdict, Caller) else None
        client = host_of(request) if token is None else token.token_id
        wait_s = self._rates.take(client, self._now())
        if wait_s == 0:
            return verdict
        message = f"more requests than one client may make; try again in {ceil(wait_s)} s"
        return Failure(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message, fields={"retry_after_s": ceil(wait_s)})

    def _known(self, request: HttpRequest) -> Caller | None:
        """Who was refused, if that is somebody."""
        caller = self._access.caller(token_of(request))
        return None if isinstance(caller, Failure) else caller

    def _judge(self, request: HttpRequest, endpoint: Endpoint) -> Caller | Failure:
        if endpoint.role is None:
            return ANYBODY
        if request.method not in SAFE and comes_from_elsewhere(request):
            return Failure(
                ErrorCode.GROUP_AUTHORIZATION_FAILED, "a page of another site may not ask for this"
            )
        return self._access.admit(
            token_of(request),
            endpoint.roles,
            _groups_of(request, endpoint),
            any_group=endpoint.any_group,
            is_certified=_is_certified(request),
        )


def _groups_of(request: HttpRequest, endpoint: Endpoint) -> list[str]:
    """The groups that a request names where its handler looks for one; elsewhere it may name any."""
    if "group" in request.match_info:
        return [request.match_info["group"]]
    asks = () if endpoint.asks is None else endpoint.asks.__struct_fields__
    return request.query.getall("group", []) if "group" in asks else []


def caller_of(request: HttpRequest) -> Caller:
    """Who asks; for handlers that show only what the caller may know of."""
    caller: Caller = request.get(CALLER, ANYBODY)
    return caller


def judge_of(request: HttpRequest) -> Callable[[], Caller | Failure]:
    """Who asks, or why that is nobody any more; for handlers that go on for long."""
    judge: Callable[[], Caller | Failure] = request.get(JUDGE, lambda: ANYBODY)
    return judge


def token_of(request: HttpRequest) -> str | None:
    """The token that a program sends as a header, or a browser that has logged in as a cookie."""
    return bearer_of(request.headers.get("Authorization")) or request.cookies.get(COOKIE)


def comes_from_elsewhere(request: HttpRequest) -> bool:
    """Whether a browser says that a page of another site is behind it; programs say nothing of the kind."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = request.headers.get("Origin")
    return origin is not None and urlsplit(origin).netloc != request.host


def _is_certified(request: HttpRequest) -> bool:
    return request.transport is not None and bool(request.transport.get_extra_info("peercert"))


def _turn_away(request: HttpRequest, endpoint: Endpoint, failure: Failure) -> web.Response:
    """A person who looks at a page is asked to log in, or to show another token than that."""
    if endpoint.media[0] == _PAGE:
        if failure.code is ErrorCode.UNAUTHENTICATED:
            place = f"{LOGIN}?next={quote(request.raw_path, safe='')}"
            return web.Response(status=303, headers={"Location": place, "Cache-Control": "no-store"})
        if failure.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return login_page(request.raw_path, failure)
    return refusal(endpoint.with_error_fields(failure))
