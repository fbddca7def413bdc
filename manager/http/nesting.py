"""How deep a JSON document is nested, found out without walking it."""

from __future__ import annotations

import re

MAX_DEPTH = 100
"""Brackets in brackets; far below what any reader of the same value, here or at a worker, can stand."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


def is_deeper_than(limit: int, document: bytes) -> bool:
    """Whether `document`, which is JSON, has more than `limit` brackets in brackets.

    Nearly every document has fewer brackets than that in all. Of the others all but the brackets is thrown
    away, and then, `limit` times, the innermost pairs: each step is one pass in C, whatever the document.
    """
    if document.count(b"[") + document.count(b"{") <= limit:
        return False
    brackets = _STRING.sub(b"", document).translate(_ALIKE, _NO_BRACKET)
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)
