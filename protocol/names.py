"""What may be called what: group ids, instance ids and task names (protocol §2, §3.1)."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

MAX_NAME_LENGTH = 249
_LEGAL = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")

LEGAL: Final = "1 to 249 characters of [A-Za-z0-9._-], not `.` or `..`"
"""What a name is, for people."""
# `$` would let a trailing newline through, and `\Z` is not known to JSON Schema.
PATTERN: Final = r"^(?!\.{1,2}(?![\s\S]))[A-Za-z0-9._-]+(?![\s\S])"

Name = Annotated[
    str, msgspec.Meta(pattern=PATTERN, min_length=1, max_length=MAX_NAME_LENGTH, description=LEGAL)
]
"""An instance id or a task name inside a message."""


def is_legal_name(name: str) -> bool:
    """Whether `name` may name a group, an instance or a task."""
    return _LEGAL.match(name) is not None
