"""Values of rows as JSON, from the texts that Spark has made of them; rules without I/O.

A text or bytes (in base64) come as they are, behind a `"`; everything else as Spark's own JSON, behind a `=`.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from protocol.messages.base import MAX_INT
from telemetry.secrets import SECRETS

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LENGTH: Final = 1000
"""Characters of one value; what is longer is cut."""
MAX_NESTING: Final = 100
"""Brackets of one value that are open at once; what is deeper is cut, too: no reader bears any depth."""
TEXT: Final = '"'
VALUE: Final = "="
_BRACKET = re.compile(r"[\[\]{}]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def json_row(texts: Sequence[str | None]) -> tuple[tuple[Any, ...], int]:
    """The values of a row without secrets, and how many of them are cut."""
    values = tuple(map(_value, texts))
    return values, sum(text is not None and _is_cut(text) for text in texts)


def _is_cut(text: str) -> bool:
    return len(text) > MAX_LENGTH + 1 or (text[:1] == VALUE and _nesting(text) > MAX_NESTING)


def _nesting(text: str) -> int:
    signs = _BRACKET.findall(_STRING.sub("", text))
    return max(accumulate(1 if sign in "[{" else -1 for sign in signs), default=0)


def _value(text: str | None) -> Any:
    """Secrets are taken out of what was read: in JSON, one may be what holds it together."""
    if text is None:
        return None
    if _is_cut(text):
        return SECRETS.hide_cut(text[1:])[: MAX_LENGTH - 1] + "…"
    if text[0] == TEXT:
        return SECRETS.hide(text[1:])
    return _hidden(json.loads(text[1:], parse_int=_whole, parse_float=_fraction))


def _hidden(value: Any) -> Any:
    match value:
        case str():
            return SECRETS.hide(value)
        case dict():
            return {SECRETS.hide(name): _hidden(each) for name, each in value.items()}
        case list():
            return [_hidden(each) for each in value]
        case _:
            return value


def _whole(digits: str) -> int | str:
    """A number that a script could not hold is a text, so that all its digits arrive (protocol §2.1).

    So is one that has a secret in it, which is taken out of the text.
    """
    number = int(digits)
    return number if abs(number) <= MAX_INT and SECRETS.hide(digits) == digits else digits


def _fraction(digits: str) -> float | str:
    number = float(digits)
    is_exact = Decimal(digits) == Decimal(repr(number))
    return number if is_exact and SECRETS.hide(digits) == digits else digits
