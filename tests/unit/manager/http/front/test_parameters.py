from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from multidict import CIMultiDict, MultiDict

from manager.http.front.parameters import parameters_of, read_parameters
from protocol.errors import RefusedError
from protocol.messages.events import EventListQuery
from protocol.messages.groups import CoordinatorQuery, GroupListQuery

if TYPE_CHECKING:
    import msgspec

    from manager.http.front.reading import HttpRequest


class _Request:
    def __init__(self, query: dict[str, str], headers: dict[str, str]) -> None:
        self.query = MultiDict(query)
        self.headers = CIMultiDict(headers)


def asked(query: dict[str, str], **headers: str) -> HttpRequest:
    renamed = {name.replace("_", "-"): value for name, value in headers.items()}
    return cast("HttpRequest", _Request(query, renamed))


def refusal(kind: type[msgspec.Struct], query: dict[str, str], **headers: str) -> tuple[str, str]:
    with pytest.raises(RefusedError) as caught:
        read_parameters(asked(query, **headers), kind)
    return caught.value.failure.code.name, caught.value.failure.message


def test_text_numbers_and_headers_are_read_and_the_rest_is_left() -> None:
    """Defaults where nothing is said; text that looks like a number is text."""
    read = read_parameters(asked({"limit": "7", "more": "x"}, last_event_id="12"), EventListQuery)
    assert read == EventListQuery(limit=7, last_event_id=12)
    assert read_parameters(asked({"group": "7"}), EventListQuery).group == "7"
    assert read_parameters(asked({"state": ""}), GroupListQuery) == GroupListQuery(state="")


@pytest.mark.parametrize(
    "text", ["", "0", "1001", "-1", "+1", "1.0", "1e2", " 1", "1_0", "\u0665", "null", "9" * 40]
)
def test_only_digits_within_the_bounds_are_a_number(text: str) -> None:
    """Whatever else msgspec would make a number of."""
    expected = ("INVALID_REQUEST", "limit: expected a whole number from 1 to 1000")
    assert refusal(EventListQuery, {"limit": text}) == expected


def test_a_bad_header_is_named_as_it_is_spelled() -> None:
    """So that it is found."""
    code, message = refusal(EventListQuery, {}, last_event_id="x")
    assert (code, message.split(":")[0]) == ("INVALID_REQUEST", "Last-Event-ID")


@pytest.mark.parametrize("query", [{}, {"group": ""}, {"group": ".."}, {"group": "a/b"}])
def test_what_is_wrong_with_a_group_has_its_own_code(query: dict[str, str]) -> None:
    """Missing where it is needed, or illegal."""
    code, message = refusal(CoordinatorQuery, query)
    assert code == "INVALID_GROUP_ID"
    assert "group" in message


def test_parameters_say_where_they_stand() -> None:
    """A header is one whose name has capitals."""
    places = {each.name: each.is_header for each in parameters_of(EventListQuery)}
    assert places == {"after": False, "limit": False, "group": False, "Last-Event-ID": True}
