from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.manager.fuzz.front import FUZZ, JOIN, MAX_BYTES, request_bytes

if TYPE_CHECKING:
    from tests.integration.manager.fuzz.front import Answer, Front

BEAT = b'{"member_id": "x", "generation_id": 1}'
PATH = "/v1/groups/g/heartbeat"
LINES = (
    *(b"GET / HTTP/1.1", b"GET / HTTP/1.0", b"GET /healthz HTTP/0.9", b"GET /healthz"),
    *(b"POST " + PATH.encode() + b" HTTP/1.1", b"PRI * HTTP/2.0", b"get / HTTP/1.1", b"GET  /  HTTP/1.1"),
    *(b"GET http://x:99999/ HTTP/1.1", b"CONNECT m:1 HTTP/1.1", b"OPTIONS * HTTP/1.1"),
    *(b"\x16\x03\x01\x02\x00\x01\x00", b"\x00", b"", b"GET /\xff\xfe HTTP/1.1", b"GET / HTTP/9.9"),
    *(b"GET /\x00 HTTP/1.1", b"G\xc3\x89T / HTTP/1.1", b"POST /v1/groups/g/join HTTP/1.1"),
    b"GET /" + b"a" * 9000 + b" HTTP/1.1",
)
HEADERS = (
    *(b"Host: m", b"Host: a\r\nHost: b", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: x"),
    *(b"Content-Length: 38", b"Content-Length: 38\r\nContent-Length: 38"),
    *(b"Content-Length: 3\r\nContent-Length: 38", b"Content-Length: +38"),
    *(b"Content-Length: 999999999999999999999999", b"Transfer-Encoding: chunked"),
    *(b"Transfer-Encoding: nonsense", b"Transfer-Encoding: chunked, chunked"),
    *(b"Content-Length: 38\r\nTransfer-Encoding: chunked", b"Expect: 100-continue", b"Expect: miracles"),
    *(b"Content-Encoding: gzip", b"Content-Encoding: deflate", b"Content-Encoding: br"),
    *(b"Content-Encoding: zstd", b"Content-Encoding: nonsense", b"Connection: close"),
    *(b"Connection: keep-alive", b"Connection: upgrade\r\nUpgrade: websocket", b"Upgrade: h2c", b"no colon"),
    *(b": no name", b"A : b", b" folded: x", b"X: \xff\xfe", b"X: \x00", b"X: " + b"y" * 9000),
    *(b"\r\n".join(b"X%d: y" % n for n in range(200)), b"X: y\nZ: w"),
    *(b"Content-Type: text/plain; charset=utf-99", b"Content-Type: \xff", b"Accept: text/html"),
    b"Sec-WebSocket-Version: 13",
)
CHUNKS = (
    *(b"26\r\n" + BEAT + b"\r\n0\r\n\r\n", b"zz\r\n", b"-1\r\n", b"5\r\nabc", b"26\r\n" + BEAT + b"X"),
    *(b"0\r\n\r\n", b"ffffffffffffffffff\r\n", b"26;ext=\x00\r\n" + BEAT + b"\r\n0\r\nTrailer: x\r\n\r\n"),
    b"0\r\nX: \xff\r\n\r\n",
)
pieces = st.one_of(
    st.sampled_from(LINES), st.sampled_from(HEADERS), st.sampled_from(CHUNKS), st.binary(max_size=40)
)
breaks = st.sampled_from([b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"", b" "])
garbage = st.lists(st.tuples(pieces, breaks), max_size=12).map(
    lambda found: b"".join(a + b for a, b in found)
)
requests = st.builds(
    lambda line, headers, body: (
        line + b"\r\n" + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body
    ),
    st.sampled_from(LINES),
    st.lists(st.sampled_from(HEADERS), max_size=4),
    st.sampled_from((*CHUNKS, BEAT, b"", gzip.compress(BEAT), b"\xff" * 40)),
)


async def shout(front: Front, *parts: bytes) -> None:
    """Send the parts on one connection, see that another one is served, then hang up."""
    wire = await front.connect()
    try:
        for part in parts:
            await wire.send(part)
            await front.still_served_beside()
        for answer in await wire.answers():
            answer.check()
    except OSError:
        pass  # the manager hung up first, as it may
    finally:
        await wire.close()
        await front.all_quiet()
    await front.still_serves()


@settings(max_examples=80 * FUZZ)
@given(data=garbage)
def test_any_bytes_are_survived(front: Front, data: bytes) -> None:
    """Whatever is answered has a code, and nothing is left behind."""
    front.run(shout(front, data))


@settings(max_examples=100 * FUZZ)
@given(data=requests, cut=st.integers(0, 400), more=requests)
def test_broken_requests_are_survived(front: Front, data: bytes, cut: int, more: bytes) -> None:
    """Cut anywhere, one after the other on the same connection."""
    front.run(shout(front, data[:cut], data[cut:], more))


async def one_answer(front: Front, data: bytes) -> Answer:
    wire = await front.connect()
    await wire.send(data)
    answer = await wire.answer()
    await wire.close()
    await front.all_quiet()
    await front.still_serves()
    answer.check()
    return answer


def post(body: bytes, *headers: str, path: str = PATH) -> bytes:
    return request_bytes("POST", path, body, "".join(f"{header}\r\n" for header in headers))


def chunked(*chunks: bytes) -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


BOMB = gzip.compress(b" " * 50_000_000)
REFUSED = {
    "no method of HTTP": (b"\x16\x03\x01\r\n\r\n", "INVALID_REQUEST"),
    "no number of a length": (b"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: x\r\n\r\n", "INVALID_REQUEST"),
    "two lengths": (
        b"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "INVALID_REQUEST",
    ),
    "a huge header": (b"GET / HTTP/1.1\r\nHost: m\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", "INVALID_REQUEST"),
    "a huge path": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", "INVALID_REQUEST"),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "INVALID_REQUEST"),
    "no such chunk": (chunked(b"{") + b"zz\r\n", "INVALID_REQUEST"),
    "an expectation": (post(BEAT, "Expect: miracles"), "UNKNOWN_MEMBER_ID"),
    "an expectation of nothing": (
        b"GET /x HTTP/1.1\r\nHost: m\r\nExpect: miracles\r\n\r\n",
        "INVALID_REQUEST",
    ),
    "not gzip": (post(BEAT, "Content-Encoding: gzip"), "INVALID_REQUEST"),
    "half of gzip": (post(gzip.compress(BEAT)[:20], "Content-Encoding: gzip"), "INVALID_REQUEST"),
    "a gzip bomb": (post(BOMB, "Content-Encoding: gzip"), "PAYLOAD_TOO_LARGE"),
    "a deflate bomb": (
        post(zlib.compress(b" " * 50_000_000), "Content-Encoding: deflate"),
        "PAYLOAD_TOO_LARGE",
    ),
    "too large": (post(b" " * (MAX_BYTES + 1)), "PAYLOAD_TOO_LARGE"),
    "too large in chunks": (chunked(*[b" " * 50_000] * 5), "PAYLOAD_TOO_LARGE"),
    "too large by its own word": (
        b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: m\r\nContent-Length: 99999999999\r\n\r\n",
        "PAYLOAD_TOO_LARGE",
    ),
    "too large, and waits to be told to go on": (
        b"POST "
        + PATH.encode()
        + b" HTTP/1.1\r\nHost: m\r\nExpect: 100-continue\r\nContent-Length: 300000\r\n\r\n",
        "PAYLOAD_TOO_LARGE",
    ),
    "a chunked body that is all right": (chunked(BEAT, b""), "UNKNOWN_MEMBER_ID"),
    "gzip that is all right": (post(gzip.compress(BEAT), "Content-Encoding: gzip"), "UNKNOWN_MEMBER_ID"),
    "no type of the body": (post(BEAT), "UNKNOWN_MEMBER_ID"),
    "another type of the body": (post(BEAT, "Content-Type: text/x-y; charset=utf-99"), "UNKNOWN_MEMBER_ID"),
    "a polite wait": (post(BEAT, "Expect: 100-continue"), "UNKNOWN_MEMBER_ID"),
    "an old version": (post(BEAT).replace(b"HTTP/1.1", b"HTTP/1.0"), "UNKNOWN_MEMBER_ID"),
    "an upgrade": (post(BEAT, "Connection: upgrade", "Upgrade: websocket"), "UNKNOWN_MEMBER_ID"),
    "another host in the line": (post(BEAT).replace(b" /v1", b" http://other/v1"), "UNKNOWN_MEMBER_ID"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_odd_requests_are_answered(front: Front, what: str) -> None:
    """Each with the code that says what is wrong; what is merely unusual is served."""
    data, code = REFUSED[what]
    assert front.run(one_answer(front, data)).document()["error"] == code


def test_pipelined_requests_are_answered_in_order(front: Front) -> None:
    """Many at once on one connection."""
    paths = ["/healthz", "/v1/nothing", "/v1/groups/nobody", "/readyz"] * 25

    async def pipeline() -> list[int]:
        wire = await front.connect()
        await wire.send(b"".join(request_bytes("GET", path) for path in paths))
        answers = [await wire.answer() for _ in paths]
        await wire.close()
        await front.all_quiet()
        return [answer.status for answer in answers]

    assert front.run(pipeline()) == [200, 404, 404, 200] * 25


def test_what_is_pipelined_behind_a_parked_request_goes_with_its_connection(front: Front) -> None:
    """Closing the connection withdraws the join; the request behind it is never carried out."""

    async def park() -> None:
        join = JOIN | {"protocol_type": "test"}
        first = await front.tell("POST", "/v1/groups/parked/join", join)
        wire = await front.connect()
        body = json.dumps(join).encode()
        behind = request_bytes("DELETE", f"/v1/groups/parked/members/{first['member_id']}")
        await wire.send(post(body, path="/v1/groups/parked/join") + behind)
        await front.until_parked(1)
        await wire.close()
        await front.all_quiet()
        members = (await front.tell("GET", "/v1/groups/parked"))["members"]
        assert [member["member_id"] for member in members] == [first["member_id"]]

    front.run(park())
