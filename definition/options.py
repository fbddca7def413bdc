"""Names and numbers in the options of Spark's sources, read as Java reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from definition.values import Scalar

T = TypeVar("T")

LONG: Final = 2**63
"""The first whole number that is too large for Java's `long`; readers of JSON go on at -LONG there."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_SPACE = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away. Python's `strip` takes more, such as a no-break space, which Spark keeps."""


def lowered(options: Mapping[str, T]) -> dict[str, T]:
    """The options by their names in lower case: Spark knows them in any."""
    return {name.lower(): value for name, value in options.items()}


def written(options: Iterable[str], name: str) -> str:
    """How options spell a name; as it is given here, if it is none of theirs."""
    return lowered({each: each for each in options}).get(name.lower(), name)


def without(options: Mapping[str, T], names: Container[str]) -> dict[str, T]:
    """The options but those of these names, which are in lower case."""
    return {name: value for name, value in options.items() if name.lower() not in names}


def trimmed(value: object) -> str:
    """A value as text, without what Java's `trim` takes away."""
    return str(value).strip(_SPACE)


def long_of(value: object) -> int | None:
    """A value as Java's `Long.parseLong` reads it, to which white space is none; None if it is no number."""
    text = str(value)
    return number if _WHOLE.fullmatch(text) and -LONG <= (number := int(text)) < LONG else None


def moment_fault(value: Scalar) -> str | None:
    """What is wrong with a time."""
    moment = long_of(value)
    return None if moment is not None and moment >= 0 else "expected a time in whole milliseconds since 1970"
