"""Keys that a JSON document has twice in one object: of these the last one would win without a word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Pairs(list[tuple[str, Any]]):
    """An object, as it is written."""


class _FoundError(Exception):
    """There is one; the reading need not go on."""


def duplicate_key(document: bytes) -> str | None:
    """Where the first key is that an object has twice, as `rules[2].threshold`; None if there is none.

    Args:
        document: JSON that another reader has understood, nested as deep as that one lets it be.
    """
    try:
        _read(document, _once)
    except _FoundError:
        return next(_places(_read(document, _Pairs), ""))
    return None


def _read(document: bytes, hook: Any) -> Any:
    """Numbers are of no interest, and there are some that take long."""
    return json.loads(document, object_pairs_hook=hook, parse_int=len, parse_float=len)


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Keeps nothing of the object."""
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        raise _FoundError


def _places(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, inner in value:
            at = f"{place}.{key}" if place else key
            if key in seen:
                yield at
            seen.add(key)
            yield from _places(inner, at)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, f"{place}[{number}]")
