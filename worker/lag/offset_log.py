"""What an entry of Spark's offset log says of Kafka's topics; rules without I/O.

An entry is a version, a line of metadata, and a line for each source that streams, in the order of the plan:
for Kafka `{"topic": {"0": 23}}`, the next offset to read. Which line is whose the entry does not say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Offsets: TypeAlias = dict[str, dict[int, int]]
"""The next offset to read, by topic and partition."""

_SUBSCRIBE, _PATTERN, _ASSIGN = "subscribe", "subscribepattern", "assign"


def offsets_of(entry: str) -> list[Offsets]:
    """What each line says that is of Kafka's kind; an entry of other sources alone says nothing."""
    found = (_read(line) for line in entry.split("\n")[2:])
    return [offsets for offsets in found if offsets is not None]


def _read(line: str | bytes) -> Offsets | None:
    try:
        return msgspec.json.decode(line, type=dict[str, dict[int, int]]) or None
    except msgspec.DecodeError:
        return None


def offsets_in(record: Mapping[str, Any]) -> list[Offsets]:
    """Where a finished batch ended, by Spark's record of it: of those sources that are of Kafka's kind."""
    ends = (msgspec.json.encode(source.get("endOffset")) for source in record.get("sources", ()))
    return [offsets for end in ends if (offsets := _read(end)) is not None]


def of_source(lines: Iterable[Offsets], options: Mapping[str, Any]) -> Offsets:
    """The offsets of the topics that a source with these options reads.

    Where two sources read one topic, neither can be told from the other: the one that is further behind is
    taken for both.
    """
    reads = reader_of(options)
    merged: Offsets = {}
    for offsets in lines:
        for topic, partitions in offsets.items():
            if not reads(topic):
                continue
            known = merged.setdefault(topic, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return merged


def reader_of(options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Whether a source with these options reads a topic."""
    given = {name.lower(): str(value) for name, value in options.items()}
    if _SUBSCRIBE in given:
        topics = {each.strip() for each in given[_SUBSCRIBE].split(",")}
        return topics.__contains__
    if _PATTERN in given:
        pattern = _compiled(given[_PATTERN])
        return lambda topic: pattern is not None and pattern.fullmatch(topic) is not None
    return _assigned(given.get(_ASSIGN)).__contains__


def assigned_of(options: Mapping[str, Any]) -> Mapping[str, list[int]] | None:
    """The partitions that a source with these options reads, by topic; None if it reads all."""
    given = {name.lower(): value for name, value in options.items()}
    return _assigned(given[_ASSIGN]) if _ASSIGN in given else None


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Java's patterns for topics are Python's, too, as good as always."""
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _assigned(value: Any) -> dict[str, list[int]]:
    try:
        return msgspec.json.decode(value if isinstance(value, str) else b"", type=dict[str, list[int]])
    except msgspec.DecodeError:
        return {}
