"""What the options of a Kafka source say of what it reads; rules without I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from definition import kafka_options
from definition.options import lowered, trimmed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SUBSCRIBE, _PATTERN, _ASSIGN = "subscribe", "subscribepattern", "assign"


def named_of(options: Mapping[str, Any]) -> Sequence[str]:
    """The topics that a source with these options names; none if it has a pattern."""
    given = lowered(options)
    if _SUBSCRIBE in given:
        return kafka_options.subscribed(given[_SUBSCRIBE])
    return [topic for topic, numbers in _assigned(given.get(_ASSIGN)).items() if numbers]


def pattern_of(options: Mapping[str, Any]) -> str | None:
    """What the topics that it reads are matched by, in Java's words; None if it names them."""
    given = lowered(options)
    return trimmed(given[_PATTERN]) if _PATTERN in given else None


def assigned_of(options: Mapping[str, Any]) -> Mapping[str, frozenset[int]] | None:
    """The partitions that a source with these options reads, by topic; None if it reads all.

    None of any topic if they cannot be read, with which no query begins (`definition.kafka_options`).
    """
    given = lowered(options)
    return _assigned(given[_ASSIGN]) if _ASSIGN in given else None


def assigned_to(options: Mapping[str, Any], partitions: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The options of a source that reads these partitions instead, of the same brokers."""
    ways = {_SUBSCRIBE, _PATTERN, _ASSIGN}
    others = {name: value for name, value in options.items() if name.lower() not in ways}
    return {**others, _ASSIGN: json.dumps(partitions)}


def _assigned(value: Any) -> dict[str, frozenset[int]]:
    return kafka_options.assigned(value) or {}
