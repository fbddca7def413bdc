"""What options of Spark's Kafka source say of partitions and numbers, and what is wrong with them.

Spark reads them when the query begins, and says of most which form it expects, and not where. The rules are
those of its `JsonUtils` and `KafkaSourceProvider`, as tried with 4.1.1: names of options in any case, white
space around values, partitions by number in a text, numbers with a fraction of nothing. Numbers of more than
64 bits it would take as others.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from definition.options import LONG, long_of, lowered, moment_fault, trimmed, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from definition.values import Scalar

    Rule: TypeAlias = Callable[[Scalar, Mapping[str, Any]], str | None]
    """What is wrong with a value, beside the options of its source by their names in lower case."""

_INT: Final = 2**31
_EARLIEST: Final = -2
"""The least offset there is a meaning for: -1 is the end, and -2 the beginning."""
_BY_PARTITION = 'JSON as text, as {"TOPIC": {"PARTITION": NUMBER}}'
_ASSIGNED = 'JSON as text, as {"TOPIC": [PARTITION, PARTITION]}'
_LEVELS = ("read_uncommitted", "read_committed")
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
_NO_TOPIC = "names a topic that cannot be: a name is 1 to 249 letters of a to z, digits and . _ -"
"""Not which: it may be of any length, have any characters, and be a secret that stands in the wrong place."""


def by_partition(value: object) -> dict[str, dict[int, int]] | None:
    """The numbers in `{"topic": {"0": 23}}`, JSON as text; None if it is not that."""
    try:
        return {
            topic: {_partition(long_of(number)): _whole(each) for number, each in numbers.items()}
            for topic, numbers in _topics(value, dict)
        }
    except (ValueError, OverflowError, RecursionError):
        return None


def assigned(value: object) -> dict[str, frozenset[int]] | None:
    """The partitions in `{"topic": [0, 1]}`, JSON as text; None if it is not that."""
    try:
        return {
            topic: frozenset(_partition(_whole(each)) for each in numbers)
            for topic, numbers in _topics(value, list)
        }
    except (ValueError, OverflowError, RecursionError):
        return None


def subscribed(value: object) -> list[str]:
    """The topics in `a, b`."""
    return [name for each in str(value).split(",") if (name := trimmed(each))]


def _topics(value: object, kind: type) -> Iterator[tuple[str, Any]]:
    """Each topic and what is said of it. As Spark does, it leaves what is behind the object."""
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - as any other text that is not of the form
    found, _ = json.JSONDecoder().raw_decode(trimmed(value))
    if not isinstance(found, dict) or not all(isinstance(each, kind) for each in found.values()):
        raise ValueError
    return iter(found.items())


def _partition(number: int | None) -> int:
    if number is None or not 0 <= number < _INT:
        raise ValueError
    return number


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError  # noqa: TRY004 - likewise
    number = int(value)
    if number != value or not -LONG <= number < LONG:
        raise ValueError
    return number


def _offsets_fault(value: Scalar, given: Mapping[str, Any]) -> str | None:
    if trimmed(value).lower() in {"earliest", "latest"}:
        return None
    offsets = by_partition(value)
    if offsets is None:
        return f"expected earliest, latest, or {_BY_PARTITION}"
    meaning = "and there is none; -1 is the end, -2 the earliest"
    return _numbers_fault(offsets, given, _EARLIEST, f"wants offset {{}}, {meaning}")


def _timestamps_fault(value: Scalar, given: Mapping[str, Any]) -> str | None:
    times = by_partition(value)
    if times is None:
        return f"expected {_BY_PARTITION}"
    meaning = "and expected are whole milliseconds since 1970; -1 is the end, -2 the earliest"
    return _numbers_fault(times, given, _EARLIEST, f"wants time {{}}, {meaning}")


def _numbers_fault(
    numbers: Mapping[str, Mapping[int, int]], given: Mapping[str, Any], least: int, low: str
) -> str | None:
    """What is wrong with numbers by partition; `low` is said of one that is less than `least`."""
    if fault := _topics_fault(numbers):
        return fault
    for topic, each in numbers.items():
        for number, wanted in each.items():
            if wanted < least:
                return f"topic {topic}, partition {number}: {low.format(wanted)}"
    if not any(numbers.values()) and _reads_some(given):
        return "names no partition; it has to name all that are read"
    return None


def _reads_some(given: Mapping[str, Any]) -> bool:
    """Whether a source is sure to read partitions. A pattern may find none, and none are to be named then."""
    return "subscribe" in given or any((assigned(given.get("assign")) or {}).values())


def _topics_fault(topics: Iterable[str]) -> str | None:
    return None if all(map(_TOPIC.fullmatch, topics)) else _NO_TOPIC


def _assign_fault(value: Scalar, _: Mapping[str, Any]) -> str | None:
    partitions = assigned(value)
    return f"expected {_ASSIGNED}" if partitions is None else _topics_fault(partitions)


def _subscribe_fault(value: Scalar, _: Mapping[str, Any]) -> str | None:
    topics = subscribed(value)
    return _topics_fault(topics) if topics else "names no topic"


def _most_fault(value: Scalar, _: Mapping[str, Any]) -> str | None:
    most = long_of(value)
    return None if most is not None and most > 0 else "expected a whole number above 0"


def _least_fault(value: Scalar, given: Mapping[str, Any]) -> str | None:
    least, most = long_of(value), long_of(given.get(_MOST.lower()))
    if least is None:
        return "expected a whole number"
    return f"is more than {_MOST}, which is {most}" if most is not None and least > most else None


def _choice_fault(value: Scalar, _: Mapping[str, Any]) -> str | None:
    return None if str(value).lower() in {"true", "false"} else "expected true or false"


def _isolation_fault(value: Scalar, _: Mapping[str, Any]) -> str | None:
    return None if value in _LEVELS else f"expected {' or '.join(_LEVELS)}"


PLACES: Final[Mapping[str, Rule]] = {
    "startingTimestamp": lambda value, _: moment_fault(trimmed(value)),
    "startingOffsetsByTimestamp": _timestamps_fault,
    "startingOffsets": _offsets_fault,
}
"""The options that say where a source begins: of several, Spark obeys the first one here."""
_MOST: Final = "maxOffsetsPerTrigger"
_OTHERS: Final[Mapping[str, Rule]] = {
    "subscribe": _subscribe_fault,
    "assign": _assign_fault,
    _MOST: _most_fault,
    "minOffsetsPerTrigger": _least_fault,
    "failOnDataLoss": _choice_fault,
    "kafka.isolation.level": _isolation_fault,
}


def obeyed(given: Mapping[str, Any]) -> str | None:
    """Which of `PLACES` a source goes by; `given` are its options by their names in lower case."""
    return next((name for name in PLACES if name.lower() in given), None)


def option_faults(options: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """What is wrong with the options of a Kafka source: the name of each, as it is written, and the fault.

    What has a reference in it is not judged: what stands for it is not known.
    """
    given = lowered(options)
    place = obeyed(given)
    rules = {**_OTHERS, **({} if place is None else {place: PLACES[place]})}
    for name, rule in rules.items():
        value = given.get(name.lower())
        if value is None or "${" in str(value):
            continue
        if fault := rule(value, given):
            yield written(options, name), fault
