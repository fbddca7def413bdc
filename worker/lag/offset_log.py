"""What Spark's checkpoint says of the offsets of its sources; rules without I/O.

An entry of the offset log is a version, a line of metadata, and a line for each source that streams, in the
order of the plan: for Kafka `{"topic": {"0": 23}}`, the next offset to read. Which line is whose the entry
does not say: the same topic may be in two clusters, and two sources may read different partitions of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Offsets: TypeAlias = dict[str, dict[int, int]]
"""The next offset to read, by topic and partition."""
Lines: TypeAlias = "Sequence[Offsets | None]"
"""What each source's line says, in the order of the plan; None if that is not of Kafka's kind."""
Order: TypeAlias = "Sequence[str | None]"
"""Whose each line is, by the place of a Kafka source in the definition; None if it is no such source's."""


def offsets_of(entry: str) -> list[Offsets | None]:
    """What the lines of an entry say."""
    return [_line(line) for line in entry.split("\n")[2:]]


def initial_of(text: str) -> Offsets | None:
    """Where a source has begun, by what it keeps in `sources/NUMBER/0`: a version and a line."""
    return _line(text.partition("\n")[2])


def offsets_in(record: Mapping[str, Any]) -> list[Offsets | None]:
    """Where a finished batch ended, by Spark's record of it."""
    return [_converted(source.get("endOffset")) for source in record.get("sources", ())]


def _line(text: str) -> Offsets | None:
    """Spark has written it, so it is in one form; what people write in options may be in several."""
    try:
        return msgspec.json.decode(text, type=Offsets)
    except msgspec.DecodeError:
        return None


def _converted(value: object) -> Offsets | None:
    try:
        return msgspec.convert(value, Offsets, str_keys=True)
    except msgspec.ValidationError:
        return None


def of_place(lines: Lines, order: Order, place: str) -> list[Offsets | None]:
    """The lines of one source; nothing unless it is known of all lines whose they are.

    SQL that reads a source twice makes two of it, each with a line of its own.
    """
    if len(lines) != len(order):
        return []
    return [offsets for offsets, owner in zip(lines, order, strict=True) if owner == place]


def furthest_behind(lines: Iterable[Offsets | None]) -> Offsets:
    """The lines of one source as one: whatever it was read for, has been read up to there."""
    merged: Offsets = {}
    for offsets in lines:
        for topic, partitions in (offsets or {}).items():
            known = merged.setdefault(topic, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return merged
