"""Logging a browser in: it shows a token once, and carries it in a cookie that no script can read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiohttp import web

from manager.http.authorization import COOKIE, LOGIN, comes_from_elsewhere
from manager.http.front.reading import host_of
from manager.http.front.replying import refusal
from manager.http.login_page import login_page, own_place
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from manager.access.authorizer import Authorizer
    from manager.access.rates import Rates
    from manager.http.front.reading import HttpRequest
    from manager.http.front.replying import Handler


class Login:
    """GET and POST /login, POST /logout; the cookie goes when the browser is closed."""

    def __init__(self, access: Authorizer, rates: Rates | None = None) -> None:
        """`rates` is how often one client may try."""
        self._access = access
        self._rates = rates

    def pages(self) -> list[tuple[str, str, Handler]]:
        """Method, path, handler; they are for people, so the API's description has none of them."""
        return [
            ("GET", LOGIN, self.show),
            ("POST", LOGIN, self.log_in),
            ("POST", "/logout", self.log_out),
        ]

    async def show(self, request: HttpRequest) -> web.Response:
        """The form."""
        return login_page(request.query.get("next", "/"))

    async def log_in(self, request: HttpRequest) -> web.Response:
        """Back to the page that was asked for, if the token is known."""
        if comes_from_elsewhere(request):
            return _from_elsewhere()
        if self._rates is not None and self._rates.take(host_of(request), time.monotonic()) > 0:
            return refusal(Failure(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many tries; wait a while"))
        form = await request.post()
        token, place = str(form.get("token", "")).strip(), str(form.get("next", "/"))
        caller = self._access.caller(token)
        if isinstance(caller, Failure):
            return login_page(place, caller)
        response = _go_to(place)
        response.set_cookie(COOKIE, token, path="/", httponly=True, samesite="Strict", secure=request.secure)
        return response

    async def log_out(self, request: HttpRequest) -> web.Response:
        """Without the cookie."""
        if comes_from_elsewhere(request):
            return _from_elsewhere()
        response = _go_to(LOGIN)
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict", secure=request.secure)
        return response


def _go_to(place: str) -> web.Response:
    return web.Response(status=303, headers={"Location": own_place(place), "Cache-Control": "no-store"})


def _from_elsewhere() -> web.Response:
    return refusal(
        Failure(ErrorCode.GROUP_AUTHORIZATION_FAILED, "a page of another site may not ask for this")
    )
