from __future__ import annotations

from manager.access.authorizer import Caller
from manager.access.tokens import AccessToken
from manager.console.page import PageRequest
from manager.console.site import stream_for
from protocol.messages.events import Event
from protocol.roles import Role


def asked(group: str = "", *groups: str) -> PageRequest:
    token = AccessToken(token_id="i", name="n", digest=b"", role=Role.VIEWER, groups=groups, created_at_ms=0)
    return PageRequest(group, "", {}, Caller(token))


def event(group: str | None) -> Event:
    return Event(id=1, at_ms=1, type="task.created", group=group)


def test_who_may_see_some_groups_sees_no_events_of_others() -> None:
    """Nor those of no group, which tell of all: of managers, and of the log."""
    some, every = asked("", "flights*"), asked()
    assert [some.may_see(event(group)) for group in ("flights-eu", "readings", None)] == [True, False, False]
    assert [every.may_see(event(group)) for group in ("flights-eu", "readings", None)] == [True, True, True]


def test_a_page_follows_the_stream_that_its_reader_may_follow() -> None:
    """That of its group, or of all; one who may not follow all has none on pages of no group."""
    assert stream_for(asked()) == "/v1/events"
    assert stream_for(asked("flights", "flights")) == "/v1/events?group=flights"
    assert stream_for(asked("", "flights")) == ""
