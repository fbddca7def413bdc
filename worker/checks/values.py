"""Values of rows as JSON, from the texts that Spark has made of them; rules without I/O.

A text or bytes (in base64) come as they are, behind a `"`; everything else as Spark's own JSON, behind a `=`.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from protocol.messages.base import MAX_INT
from telemetry.secrets import SECRETS

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LENGTH: Final = 1000
"""Characters of one value; what is longer is cut."""
TEXT: Final = '"'
VALUE: Final = "="


def json_row(texts: Sequence[str | None]) -> tuple[tuple[Any, ...], int]:
    """The values of a row, and how many of them are cut."""
    values = tuple(map(_value, texts))
    return values, sum(text is not None and len(text) > MAX_LENGTH + 1 for text in texts)


def _value(text: str | None) -> Any:
    """A number that a script could not hold is a text, so that all its digits arrive (protocol §2.1)."""
    if text is None:
        return None
    kind, told = text[0], SECRETS.hide(text[1:])
    if len(text) > MAX_LENGTH + 1:
        return told[: MAX_LENGTH - 1] + "…"
    if kind == TEXT:
        return told
    return json.loads(told, parse_int=_whole, parse_float=_fraction)


def _whole(digits: str) -> int | str:
    number = int(digits)
    return number if abs(number) <= MAX_INT else digits


def _fraction(digits: str) -> float | str:
    number = float(digits)
    return number if Decimal(digits) == Decimal(repr(number)) else digits
