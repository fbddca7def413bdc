"""Figures and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

SECOND_MS: Final = 1000
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
_THOUSANDS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
EXACT_BELOW: Final = 10_000
SHORT: Final = 28


def duration(ms: float) -> str:
    """`188 ms`, `2.4 s`, `5 min`, `1 h 30 min`: the two largest units, or one if that says it all."""
    if ms < SECOND_MS:
        return f"{ms:.0f} ms"
    if ms < _UNITS[-1][0]:
        return f"{ms / SECOND_MS:.1f}".removesuffix(".0") + " s"
    counts = []
    for unit_ms, name in _UNITS:
        whole, ms = divmod(ms, unit_ms)
        counts.append((f"{whole:.0f} {name}", whole > 0))
    largest = next(place for place, (_, is_any) in enumerate(counts) if is_any)
    return " ".join(words for words, is_any in counts[largest : largest + 2] if is_any)


def ago(at_ms: float, now_ms: float) -> str:
    """How long ago that was; clocks of managers differ a little, so the future is now."""
    passed = max(now_ms - at_ms, 0)
    return "just now" if passed < SECOND_MS else f"{duration(passed // SECOND_MS * SECOND_MS)} ago"


def figure(value: float) -> str:
    """`0.35`, `12.5`, `1,234`, `12.3 k`, `4.5 M`."""
    if value and abs(value) < 1:
        return f"{value:.2g}"
    if abs(value) < EXACT_BELOW:
        return f"{value:,.1f}".removesuffix(".0")
    size, name = next((each for each in _THOUSANDS if abs(value) >= each[0]), _THOUSANDS[-1])
    return f"{value / size:,.1f}".removesuffix(".0") + f" {name}"


def size(count: float) -> str:
    """`512 B`, `64.3 kB`, `1.5 GB`: bytes in thousands."""
    if count < SECOND_MS:
        return f"{count:.0f} B"
    each, name = next(each for each in _THOUSANDS if count >= each[0])
    return f"{count / each:,.1f}".removesuffix(".0") + f" {name}B"


def moment(at_ms: float) -> str:
    """For people, to the second: `2026-03-01 15:04:05 UTC`; a browser adds what its own clock says."""
    return _utc(at_ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at_ms: float) -> str:
    """For machines."""
    return _utc(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def shortened(name: str, length: int = SHORT) -> str:
    """A long name with its middle left out: what tells names apart is often at their ends."""
    if len(name) <= length:
        return name
    head = (length - 1) * 2 // 3
    return f"{name[:head]}…{name[len(name) - (length - 1 - head) :]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _utc(at_ms: float) -> datetime:
    return datetime.fromtimestamp(at_ms / SECOND_MS, UTC)
