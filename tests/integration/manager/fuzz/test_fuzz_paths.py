from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.manager.fuzz.front import FUZZ

if TYPE_CHECKING:
    from tests.integration.manager.fuzz.front import Front

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")
WORDS = (
    *("v1", "groups", "g", "tasks", "t", "members", "m", "status", "pause", "resume", "stop", "restart"),
    *("rebalance", "rebalances", "offsets", "commit", "fetch", "delete", "join", "sync", "heartbeat"),
    *("leave", "claim", "validate", "coordinator", "healthz", "readyz", "events", "assignors", "managers"),
    *("metrics", "openapi.json", "reset"),
)
ODD = (
    *("", ".", "..", "%2E%2E", "%2F", "a%2Fb", "%00", "a%00b", "%0A", "%0D%0A", "%", "%zz", "%C3%A4", "%FF"),
    *("%ED%A0%80", "ä", "\udcff", "{g}", "%7Bg%7D", "~", "a b", "a+b", "a;b", "a:b", "@", "*", "a=b", "'"),
    *("x" * 249, "x" * 250, "y" * 7000, "z" * 9000, "%25", "%252F", "a\\b", "\u2028"),
)
QUERIES = (
    *("", "?", "?limit=-1", "?limit=abc", f"?limit={10**30}", "?limit=", "?limit=0", "?limit=5"),
    *("?limit=5&limit=x", "?limit=%D9%A1", "?limit=%00", "?limit=1.0", "?limit=+1", "?state=%00"),
    *("?state=%FF", "?state", "?%FF=%FF", "?group=g", "?group=", "?group=a%2Fb", "?group=g&group=.."),
    *("?group=%00", "?protocol_type=\udcff", "?a&&=&b", "?" + "a" * 9000),
    *("?" + "&".join("a=b" for _ in range(2000)), "#fragment", "?limit=1#fragment"),
)
BODIES = (b"", b"{}", b"null", b"{", b'{"members": []}', b'{"definition": {}}')
segments = st.sampled_from(WORDS) | st.sampled_from(ODD)
paths = st.lists(segments, max_size=8).map(lambda parts: "/" + "/".join(parts))


async def ask(front: Front, method: str, target: str, body: bytes) -> None:
    answer = await front.ask(method, target, body)
    assert answer is not None
    if method != "HEAD":
        answer.check()
    assert answer.status != 500


@settings(max_examples=100 * FUZZ)
@given(
    method=st.sampled_from(METHODS), path=paths, query=st.sampled_from(QUERIES), body=st.sampled_from(BODIES)
)
def test_any_method_on_any_path_is_answered(
    front: Front, method: str, path: str, query: str, body: bytes
) -> None:
    """With a code under its own status, however the path is spelled."""
    front.run(ask(front, method, path.replace(" ", "%20") + query, body))
    front.run(front.still_serves())


PLACES = (
    *("GET /v1/groups/{}", "DELETE /v1/groups/{}", "POST /v1/groups/{}/join", "GET /v1/groups/{}/rebalances"),
    *("DELETE /v1/groups/g/members/{}", "GET /v1/groups/g/tasks/{}", "PUT /v1/groups/g/tasks/{}"),
    *("DELETE /v1/groups/g/tasks/{}", "PUT /v1/groups/g/tasks/{}/pause", "GET /v1/groups/g/tasks/{}/status"),
    *(
        "POST /v1/groups/g/tasks/{}/restart",
        "GET /groups/{}",
        "GET /v1/coordinator?group={}",
        "GET /v1/groups?state={}",
    ),
)


@pytest.mark.parametrize("place", PLACES)
def test_odd_names_are_refused_or_not_found_wherever_they_stand(front: Front, place: str) -> None:
    """Every name that has ever confused a router, in every place of a name."""
    method, _, path = place.partition(" ")
    for name in ODD:
        front.run(ask(front, method, path.format(name.replace(" ", "%20")), b'{"definition": {}}'))
    front.run(front.still_serves())


@pytest.mark.parametrize("query", QUERIES)
def test_odd_queries_are_answered(front: Front, query: str) -> None:
    """By every endpoint that reads one."""
    for path in ("/v1/groups/probe/rebalances", "/v1/groups", "/v1/coordinator"):
        front.run(ask(front, "GET", path + query, b""))


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/v1/groups", "/v1/groups/nobody", "/v1/nothing"]
)
def test_head_is_get_without_a_body(front: Front, path: str) -> None:
    """The same status and the same length announced."""
    got = front.run(front.ask("GET", path))
    head = front.run(front.ask("HEAD", path))
    assert got is not None
    assert head is not None
    assert (head.status, head.body) == (got.status, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
