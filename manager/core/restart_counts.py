"""How often a task was restarted after a failure, within any window of a day at most, in few bytes.

What is kept goes with the task's stored row, so it outlives managers. An hour without brokers restarts each
task of a group some hundred times, so only `MOST_ENTRIES` restarts are told apart: of more, neighbours that
are closest for their age are put together. Up to that many a count is exact; of more it takes those that
were put together, and lie across the edge of its window, for evenly spread.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

MOST_ENTRIES: Final = 64
KEPT_S: Final = 86_400
"""No rule looks back further (`protocol.messages.alarms.Window`)."""
_ENTRY: Final = Struct("<III")
_LATEST: Final = 2**32 - 1


class _Entry(NamedTuple):
    """Some restarts, `times` of them; both seconds are since 1970."""

    first_s: int
    last_s: int
    times: int


def and_one(kept: bytes, at_ms: int) -> bytes:
    """With one more restart, at `at_ms` (since 1970)."""
    now = _second(at_ms)
    entries = [entry for entry in _entries(kept) if abs(now - entry.last_s) <= KEPT_S]
    entries.append(_Entry(now, now, 1))
    if len(entries) > MOST_ENTRIES:
        _put_together(entries, now)
    return b"".join(_ENTRY.pack(*entry) for entry in entries)


def count(kept: bytes, window_ms: int, now_ms: int) -> int:
    """How many there were in the window that ends at `now_ms` (since 1970), to a second.

    By either way of the clock: one that was set back counts what is to come no longer than what is over.
    """
    now, window = _second(now_ms), window_ms // 1000
    return sum(_within(entry, window, now) for entry in _entries(kept))


def _second(at_ms: int) -> int:
    """A clock may be as wrong as it likes."""
    return min(max(at_ms // 1000, 0), _LATEST)


def _within(entry: _Entry, window: int, now: int) -> int:
    oldest, newest = abs(now - entry.first_s), abs(now - entry.last_s)
    if newest > window:
        return 0
    if oldest <= window:
        return entry.times
    return 1 + (entry.times - 1) * (window - newest) // (oldest - newest)


def _entries(kept: bytes) -> list[_Entry]:
    whole = len(kept) - len(kept) % _ENTRY.size
    return [_Entry(*entry) for entry in _ENTRY.iter_unpack(kept[:whole])]


def _put_together(entries: list[_Entry], now: int) -> None:
    """The two that take the least time together, as a part of how long that is ago."""
    place = min(range(len(entries) - 1), key=lambda place: _width(entries[place], entries[place + 1], now))
    older, newer = entries[place], entries[place + 1]
    entries[place : place + 2] = [_Entry(older.first_s, newer.last_s, older.times + newer.times)]


def _width(older: _Entry, newer: _Entry, now: int) -> float:
    return abs(newer.last_s - older.first_s) / (abs(now - older.first_s) + 1)
