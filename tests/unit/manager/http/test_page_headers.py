"""What pages for people tell browsers."""

from __future__ import annotations

import pytest

from manager.console.site import HEADERS as CONSOLE
from manager.http.forwarding import PASSED_BACK
from manager.http.login_page import HEADERS as LOGIN


@pytest.mark.parametrize("headers", [CONSOLE, LOGIN], ids=["console", "login"])
def test_pages_tell_browsers_to_be_strict(headers: dict[str, str]) -> None:
    """Nothing inline, nothing from elsewhere, in no frame, as the type it is, without telling where from."""
    policy = dict(each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] in {"'self'", "'none'"}
    assert {policy["frame-ancestors"], policy["base-uri"]} == {"'none'"}
    assert policy["form-action"] == "'self'"
    assert not any("unsafe" in value or "*" in value or "data:" in value for value in policy.values())
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] in {"no-referrer", "same-origin"}
    assert headers["Cache-Control"] == "no-store"


def test_another_manager_s_page_is_as_strict() -> None:
    """Whoever passes it on passes on what it says to browsers."""
    assert CONSOLE.keys() <= set(PASSED_BACK)
