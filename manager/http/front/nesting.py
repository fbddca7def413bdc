"""How deep a JSON document is nested, found out without walking it.

Every step is one pass in C over what the step before has left, and their number is fixed.
"""

from __future__ import annotations

from itertools import accumulate
from operator import add
from typing import Final

MAX_DEPTH = 100
"""Brackets in brackets; far below what any reader of the same value, here or at a worker, can stand."""

_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_IDLE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_BITS: Final = bytes.maketrans(b"[]", b"10")


def is_deeper_than(limit: int, document: bytes) -> bool:
    """Whether `document`, which is JSON, has more than `limit` brackets in brackets.

    Nearly every document has fewer brackets than that in all, and nothing more is asked of it.
    """
    if document.count(b"[") + document.count(b"{") <= limit:
        return False
    return _depth(_brackets(document)) > limit


def _brackets(document: bytes) -> bytes:
    """All brackets that are not in texts, as `[` and `]`.

    What a backslash stands before goes first, then everything but brackets and quotes. Two quotes with
    nothing between them change nothing about what is inside of a text and what is not.
    """
    plain = document.replace(rb"\\", b"").replace(rb"\"", b"").translate(_ALIKE, _IDLE).replace(b'""', b"")
    return b"".join(plain.split(b'"')[::2])


def _depth(brackets: bytes) -> int:
    """The most that are open at a time, eight brackets a step: one bit each, `[` is 1."""
    bits = brackets.translate(_BITS) + b"0" * (8 - len(brackets) % 8)
    octets = int(bits, 2).to_bytes(len(bits) // 8, "big")
    open_before = accumulate(memoryview(octets.translate(_CHANGES)).cast("b"), initial=0)
    deepest: int = max(map(add, open_before, octets.translate(_PEAKS)))
    return deepest


def _runs(octet: int) -> list[int]:
    """How many more brackets are open than before each bit of `octet`, and after the last one."""
    return [*accumulate((1 if octet >> bit & 1 else -1 for bit in range(7, -1, -1)), initial=0)]


_CHANGES: Final = bytes(_runs(octet)[-1] & 0xFF for octet in range(256))
"""By how many brackets an octet opens more than it closes, as a signed byte."""
_PEAKS: Final = bytes(max(_runs(octet)) for octet in range(256))
"""The most that are open at a time within an octet, beyond those before it."""
