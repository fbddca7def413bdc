"""Heads of HTTP requests, as far as the express lane has to understand them."""

from __future__ import annotations

import re
from typing import NamedTuple

from protocol.names import is_legal_name

HEARTBEAT = re.compile(rb"POST /v1/groups/([A-Za-z0-9._-]+)/heartbeat HTTP/1\.1")
AUTHORIZATION = b"authorization"
PLAIN = frozenset(
    {
        b"host",
        b"content-type",
        b"content-length",
        b"user-agent",
        b"accept",
        b"accept-encoding",
        AUTHORIZATION,
    }
)
"""Headers that say nothing of how a heartbeat is to be answered, but for whether it is allowed."""
BODILESS = (b"GET ", b"DELETE ")
MAX_KNOWN = 4096
MAX_LENGTH = 1024

_REQUEST_LINE = re.compile(rb"[A-Z]+ /[\x21-\x7e]* HTTP/1\.1")
_HEADER = re.compile(rb"([A-Za-z0-9-]+):[ \t]*([\x20-\x7e]*?)[ \t]*")
_DECIMAL = re.compile(rb"[0-9]{1,9}")


class Head(NamedTuple):
    """`length` is that of the body; `group` is named by plain heartbeats only, as who asks is."""

    length: int
    group: str | None = None
    authorization: bytes | None = None


class Heads:
    """Takes heads apart, each once: a client sends the same one again and again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head | None] = {}

    def read(self, head: bytes) -> Head | None:
        """The head in the bytes before the empty line; None if there is anything unusual about it."""
        try:
            return self._known[head]
        except KeyError:
            found = parse(head)
        if len(head) <= MAX_LENGTH:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[head] = found
        return found


def parse(head: bytes) -> Head | None:
    """As `Heads.read`, without a memory."""
    line, *lines = head.split(b"\r\n")
    headers = [_HEADER.fullmatch(each) for each in lines]
    if not _REQUEST_LINE.fullmatch(line) or None in headers:
        return None
    values = [(header[1].lower(), header[2]) for header in headers if header is not None]
    length = _length(line, [value for name, value in values if name == b"content-length"])
    if length is None or any(name in {b"transfer-encoding", b"expect", b"upgrade"} for name, _ in values):
        return None
    tokens = [value for name, value in values if name == AUTHORIZATION]
    if len(tokens) > 1 or not all(name in PLAIN for name, _ in values):
        return Head(length)
    return Head(length, _group(line), *tokens)


def _length(line: bytes, lengths: list[bytes]) -> int | None:
    if not lengths:
        return 0 if line.startswith(BODILESS) else None
    return int(lengths[0]) if len(lengths) == 1 and _DECIMAL.fullmatch(lengths[0]) else None


def _group(line: bytes) -> str | None:
    match = HEARTBEAT.fullmatch(line)
    name = match[1].decode() if match else ""
    return name if is_legal_name(name) else None
