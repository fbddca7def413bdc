from __future__ import annotations

import pytest

from manager.http.front import heads
from manager.http.front.heads import Head, Heads, parse

BEAT = b"POST /v1/groups/g/heartbeat HTTP/1.1"
LENGTH = b"Content-Length: 12"


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ([BEAT, b"Host: m", LENGTH], Head(12, "g")),
        ([BEAT, b"host:m", b"content-length:12", b"ACCEPT: */*"], Head(12, "g")),
        ([BEAT, LENGTH, b"Authorization: Bearer x"], Head(12, "g", b"Bearer x")),
        ([BEAT, LENGTH, b"Authorization: Bearer x", b"authorization: Bearer y"], Head(12)),
        ([BEAT, LENGTH, b"Connection: close"], Head(12)),
        ([BEAT, LENGTH, b"Content-Encoding: gzip"], Head(12)),
        ([b"POST /v1/groups/../heartbeat HTTP/1.1", LENGTH], Head(12)),
        ([b"POST /v1/groups/a%20b/heartbeat HTTP/1.1", LENGTH], Head(12)),
        ([b"POST /v1/groups/" + b"g" * 250 + b"/heartbeat HTTP/1.1", LENGTH], Head(12)),
        ([b"POST /v1/groups/g/heartbeat?x HTTP/1.1", LENGTH], Head(12)),
        ([b"PUT /v1/groups/g/heartbeat HTTP/1.1", LENGTH], Head(12)),
        ([b"POST /v1/groups/g/claim HTTP/1.1", LENGTH], Head(12)),
        ([b"GET /v1/groups HTTP/1.1", b"Host: m"], Head(0)),
        ([BEAT, b"Host: m"], None),
        ([BEAT, LENGTH, LENGTH], None),
        ([BEAT, b"Content-Length: +12"], None),
        ([BEAT, b"Content-Length: 12, 12"], None),
        ([BEAT, LENGTH, b"Transfer-Encoding: chunked"], None),
        ([BEAT, LENGTH, b"Expect: 100-continue"], None),
        ([BEAT, LENGTH, b"Upgrade: websocket"], None),
        ([BEAT, LENGTH, b" folded: on"], None),
        ([BEAT, LENGTH, b"Name : x"], None),
        ([BEAT, LENGTH, b"X: \xff"], None),
        ([BEAT, b"Content-Length: 12\nX: y"], None),
        ([b"POST /v1/groups/g/heartbeat HTTP/1.0", LENGTH], None),
        ([b"\r\n" + BEAT, LENGTH], None),
        ([b""], None),
    ],
)
def test_what_a_head_says(lines: list[bytes], read: Head | None) -> None:
    """A group only of a plain heartbeat; a length only where nothing could be meant by it but that."""
    assert parse(b"\r\n".join(lines)) == read


def test_heads_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was seen is not taken apart again; neither many nor long ones fill the memory."""
    known, counted = Heads(), 0

    def counting(head: bytes) -> Head | None:
        nonlocal counted
        counted += 1
        return parse(head)

    monkeypatch.setattr(heads, "parse", counting)
    head = b"\r\n".join([BEAT, LENGTH])
    assert known.read(head) == known.read(head) == Head(12, "g")
    assert counted == 1
    for number in range(2 * heads.MAX_KNOWN):
        known.read(head + b"\r\nX: %d" % number)
    known.read(head + b"\r\nX: " + b"y" * heads.MAX_LENGTH)
    assert len(known._known) <= heads.MAX_KNOWN
    assert max(map(len, known._known)) <= heads.MAX_LENGTH
