"""Spark's interval strings, as far as a trigger takes them ("1 minute 30 seconds").

The grammar is that of Spark's `IntervalUtils.stringToInterval`, tried out against Spark 4.3.
"""

from __future__ import annotations

import re

_PART = re.compile(
    r"\s*(?P<sign>[+-]?)\s*(?P<whole>\d*)(?P<point>\.?)(?P<fraction>\d*)\s+"
    r"(?P<unit>year|month|week|day|hour|minute|second|millisecond|microsecond)s?(?=\s|\Z)",
    re.IGNORECASE | re.ASCII,
)
_PREFIX = re.compile(r"\s*interval(?=\s)", re.IGNORECASE | re.ASCII)
_MICROSECONDS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_MONTHS = {"year": 12, "month": 1}
_LONGEST_US = 2**63 - 1
_MAX_DECIMALS = 9


def trigger_interval_fault(text: str) -> str | None:
    """Why Spark would refuse `text` as a processing-time trigger, or None if it takes it."""
    parts = _parts(text)
    if parts is None:
        return 'is no interval; write one as "1 second", "500 milliseconds" or "1 minute 30 seconds"'
    if sum(_months(part) for part in parts):
        return "must not have years or months, whose length varies"
    microseconds = sum(_microseconds(part) for part in parts)
    if microseconds < 0:
        return "must not be negative"
    if microseconds > _LONGEST_US:
        return "is too long"
    return None


def trigger_interval_ms(text: str) -> int | None:
    """How long Spark takes `text` to be, in milliseconds; None if it is no interval, or is no time at all."""
    if trigger_interval_fault(text) is not None:
        return None
    return sum(_microseconds(part) for part in _parts(text) or ()) // 1000 or None


def _parts(text: str) -> list[re.Match[str]] | None:
    """The `NUMBER UNIT` parts of `text`; None if that is not all it consists of."""
    text = text.strip()
    prefix = _PREFIX.match(text)
    position = prefix.end() if prefix else 0
    parts = []
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or not _is_number(part):
            return None
        parts.append(part)
        position = part.end()
    return parts or None


def _is_number(part: re.Match[str]) -> bool:
    """Whether the digits make a number that Spark takes for this unit: only seconds have decimals."""
    if not part["point"]:
        return bool(part["whole"])
    in_seconds = part["unit"].lower() == "second"
    return in_seconds and bool(part["whole"] or part["fraction"]) and len(part["fraction"]) <= _MAX_DECIMALS


def _months(part: re.Match[str]) -> int:
    return _signed(part, int(part["whole"] or 0) * _MONTHS.get(part["unit"].lower(), 0))


def _microseconds(part: re.Match[str]) -> int:
    unit = _MICROSECONDS.get(part["unit"].lower(), 0)
    decimals = int(part["fraction"][:6].ljust(6, "0"))
    return _signed(part, int(part["whole"] or 0) * unit + decimals)


def _signed(part: re.Match[str], amount: int) -> int:
    return -amount if part["sign"] == "-" else amount
