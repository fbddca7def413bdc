from __future__ import annotations

import pytest

from manager.http.nesting import is_deeper_than


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
    ],
)
def test_the_depth_is_that_of_brackets_outside_of_texts(document: bytes, depth: int) -> None:
    """Exactly at the limit is not deeper; quotes and backslashes in texts mislead nobody."""
    assert not is_deeper_than(depth, document)
    assert depth == 0 or is_deeper_than(depth - 1, document)
