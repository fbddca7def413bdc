"""The form that asks a person for a token, and says why one is needed or why another one is."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from protocol.errors import Failure

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Log in - sparkherd</title>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/assets/console.css"></head>
<body><main class="door">
<h1>sparkherd</h1>
<form class="panel" method="post" action="/login">
{fault}<div class="field">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password"
 required autofocus aria-describedby="token-hint">
<p class="quiet" id="token-hint">As <code>sparkherd tokens create</code> printed it.</p>
</div>
<input type="hidden" name="next" value="{place}">
<button type="submit">Log in</button>
</form>
</main></body>
</html>
"""


def login_page(place: str, fault: Failure | None = None) -> web.Response:
    """The form.

    Args:
        place: where it leads to, if that is here.
        fault: what was wrong with the token that was shown; the page has its status.
    """
    shown = "" if fault is None else f'<p class="notice" role="alert">{escape(fault.message)}</p>\n'
    text = _PAGE.format(fault=shown, place=escape(own_place(place)))
    status = 200 if fault is None else fault.code.status
    return web.Response(text=text, status=status, content_type="text/html", headers=HEADERS)


def own_place(place: str) -> str:
    """A path of this site: nobody is led elsewhere by a link that begins here."""
    is_own = place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()
    return place if is_own else "/"
