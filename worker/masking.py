"""Hides what is in a row and keeps its shape; pure (docs/security.md, Quarantined rows).

People who may look but not act see that a date is there, not which one: letters become `x`, digits `9`.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode
from typing import Any, Final

_KEPT: Final = frozenset(" \t\r\n!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
"""What holds texts together. Anything else may be a value, as bytes of a number that happen to be UTF-8."""


def masked_text(text: str) -> str:
    """Each digit is a `9`, each sign of ASCII and each space itself, and whatever else there is an `x`."""
    return "".join(map(_masked, text))


def _masked(character: str) -> str:
    if character in _KEPT:
        return character
    return "9" if character.isdecimal() else "x"


def masked_bytes(base64: str) -> str:
    """An `x` for each byte: of what is no text, every byte may be a value."""
    try:
        return "x" * len(b64decode(base64, validate=True))
    except ValueError:  # it was cut
        return "x" * (len(base64) * 3 // 4)


def masked_json(text: str) -> str:
    """A JSON document of the same form, whose keys can be read; what is none is a text.

    Texts are masked sign by sign, numbers digit by digit, and each truth value is true; null stays.
    """
    try:
        document = json.loads(
            text, parse_int=_Number.of, parse_float=_Number.of, parse_constant=lambda _: None
        )
        return json.dumps(_hidden(document), ensure_ascii=False)
    except (ValueError, RecursionError):
        return masked_text(text)


class _Number(str):
    """A number as it is written: its digits count, not what it is."""

    __slots__ = ()

    @classmethod
    def of(cls, digits: str) -> _Number:
        """The mantissa, masked; one digit would be given away by an exponent."""
        return cls(masked_text(digits.lower().partition("e")[0]))


def _hidden(value: Any) -> Any:
    match value:
        case _Number():
            return _as_number(value)
        case str():
            return masked_text(value)
        case bool():
            return True
        case dict():
            return {_writable(key): _hidden(each) for key, each in value.items()}
        case list():
            return [_hidden(each) for each in value]
        case _:
            return value


def _writable(key: str) -> str:
    """JSON may escape halves of characters, which UTF-8 has none of."""
    return key.encode(errors="replace").decode()


def _as_number(masked: str) -> int | float | str:
    if "." not in masked:
        return int(masked)
    number = float(masked)
    return number if math.isfinite(number) and repr(number) == masked else masked
