from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from manager.http.front.nesting import is_deeper_than

if TYPE_CHECKING:
    from types import FrameType


@pytest.mark.parametrize(
    ("document", "depth"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b'{"a": [1, {"b": []}]}', 4),
        (b"[" + b"[]," * 500 + b"[]]", 2),
        (b"[" * 300 + b"]" * 300, 300),
        (b'{"a":' * 300 + b"1" + b"}" * 300, 300),
        (b'["' + b"[" * 500 + b'"]', 1),
        (rb'["a\"[[[[\\", [[]]]', 3),
        (b'["' + b"\\\\" * 200 + b'", "]]]]", []]', 2),
        (b'"' + b"[" * 500 + b'"', 0),
        (b"[" + b'"[", "", [], ' * 50 + b"[" * 9 + b"]" * 9 + b"]", 10),
    ],
)
def test_the_depth_is_that_of_brackets_outside_of_texts(document: bytes, depth: int) -> None:
    """Exactly at the limit is not deeper; quotes and backslashes in texts mislead nobody."""
    assert not is_deeper_than(depth, document)
    assert depth == 0 or is_deeper_than(depth - 1, document)


@pytest.mark.parametrize(
    "piece",
    [b"[" * 95 + b"]" * 95, b"[]", b'{"a":' * 95 + b"1" + b"}" * 95, b'"["', b'"", []', b'"\\\\\\"", []'],
    ids=["deep", "flat", "objects", "texts", "empty texts", "escapes"],
)
def test_the_work_grows_with_the_length_and_with_nothing_else(piece: bytes) -> None:
    """Every byte is looked at a fixed number of times, however deep or flat it is nested."""
    pieces = [piece] * (100_000 // len(piece))
    document = b"[" + b",".join(pieces) + b"]"
    assert _bytes_looked_at(document) <= 12 * len(document)


def _bytes_looked_at(document: bytes) -> int:
    """By all that is done with bytes while the depth of `document` is found out."""
    looked_at = 0

    def count(_: FrameType, event: str, call: Any) -> None:
        nonlocal looked_at
        own = getattr(call, "__self__", None)
        if event == "c_call" and isinstance(own, bytes | re.Pattern):
            looked_at += len(own) if isinstance(own, bytes) else len(document)

    sys.setprofile(count)
    try:
        assert not is_deeper_than(99, document)
    finally:
        sys.setprofile(None)
    return looked_at
