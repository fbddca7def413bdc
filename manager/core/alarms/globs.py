"""Names with `*` and `?`: compared without trying anything twice."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILED_KEPT: Final = 10_000
"""More than rules and silences have patterns with a `?`, unless many have a hundred labels."""


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is what `pattern` stands for: `*` for any characters, `?` for one.

    A group may have 100,000 tasks, each compared with 500 rules: what has no `?` is left to `str`.
    """
    if "?" in pattern:
        return _compiled(pattern)(name) is not None
    first, star, rest = pattern.partition("*")
    if not star:
        return pattern == name
    if not name.startswith(first):
        return False
    *between, last = rest.split("*")
    at, end = len(first), len(name) - len(last)
    if end < at or not name.endswith(last):
        return False
    for part in between:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


@lru_cache(COMPILED_KEPT)
def _compiled(pattern: str) -> Callable[[str], object]:
    """What stands between two `*` is looked for from the left, and where it was found it stays.

    Nothing is lost by that. So it is an atomic group, to which a regular expression never comes back.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return re.compile(_fixed(first), re.DOTALL).fullmatch
    *between, last = rest
    found = "".join(_anywhere(part) for part in between if part)
    end = f"(?>.{{{len(last)},}})(?<={_fixed(last)})"
    return re.compile(_fixed(first) + found + end, re.DOTALL).fullmatch


def _anywhere(part: str) -> str:
    """Its first `?` go before the search, which has a letter to look for then."""
    rest = part.lstrip("?")
    skipped = f".{{{len(part) - len(rest)}}}"
    return f"(?>{skipped}.*?{_fixed(rest)})" if rest else skipped


def _fixed(part: str) -> str:
    return re.escape(part).replace(r"\?", ".")
