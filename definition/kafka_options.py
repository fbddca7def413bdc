"""What options of Spark's Kafka source say of partitions and numbers, and what is wrong with them.

Spark reads them when the query begins, and says of most which form it expects, and not where. The rules are
those of its `JsonUtils` and `KafkaSourceProvider`, as tried with 4.1.1: names of options in any case, white
space around values, partitions by number in a text, numbers with a fraction of nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from definition.reading import path_to
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from definition.values import Scalar

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_INT, _LONG = 2**31, 2**63
_EARLIEST: Final = -2
"""The least offset there is a meaning for: -1 is the end, and -2 the beginning."""
_BY_PARTITION = 'JSON as text, as {"TOPIC": {"PARTITION": NUMBER}}'
_ASSIGNED = 'JSON as text, as {"TOPIC": [PARTITION, PARTITION]}'


def by_partition(value: object) -> dict[str, dict[int, int]] | None:
    """The numbers in `{"topic": {"0": 23}}`, JSON as text; None if it is not that."""
    try:
        return {
            topic: {_partition(_long(number)): _whole(each) for number, each in numbers.items()}
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


def _topics(value: object, kind: type) -> Iterator[tuple[str, Any]]:
    """Each topic and what is said of it. As Spark does, it leaves what is behind the object."""
    text = value.decode() if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise ValueError  # noqa: TRY004 - as any other text that is not of the form
    found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    if not isinstance(found, dict) or not all(isinstance(each, kind) for each in found.values()):
        raise ValueError
    return iter(found.items())


def _partition(number: int | None) -> int:
    if number is None or not 0 <= number < _INT:
        raise ValueError
    return number


def _long(text: str) -> int | None:
    """As Java reads it."""
    return number if _WHOLE.fullmatch(text) and -_LONG <= (number := int(text)) < _LONG else None


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError  # noqa: TRY004 - likewise
    return int(value)


def offsets_fault(value: Scalar) -> str | None:
    """What is wrong with `startingOffsets`."""
    if str(value).strip().lower() in {"earliest", "latest"}:
        return None
    offsets = by_partition(value)
    if offsets is None:
        return f"expected earliest, latest, or {_BY_PARTITION}"
    for topic, numbers in offsets.items():
        for number, offset in numbers.items():
            if offset < _EARLIEST:
                place = f"topic {topic}, partition {number}"
                return f"{place}: wants offset {offset}, and there is none; -1 is the end, -2 the earliest"
    return None


def timestamps_fault(value: Scalar) -> str | None:
    """What is wrong with `startingOffsetsByTimestamp`."""
    return f"expected {_BY_PARTITION}" if by_partition(value) is None else None


def moment_fault(value: Scalar) -> str | None:
    """What is wrong with a time."""
    moment = _long(str(value).strip())
    is_one = moment is not None and moment >= 0
    return None if is_one else "expected a time in whole milliseconds since 1970"


def _assign_fault(value: Scalar) -> str | None:
    return f"expected {_ASSIGNED}" if assigned(value) is None else None


def _number_fault(value: Scalar) -> str | None:
    return "expected a whole number" if _long(str(value)) is None else None


def _choice_fault(value: Scalar) -> str | None:
    return None if str(value).lower() in {"true", "false"} else "expected true or false"


PLACES: Final[Mapping[str, Callable[[Scalar], str | None]]] = {
    "startingTimestamp": moment_fault,
    "startingOffsetsByTimestamp": timestamps_fault,
    "startingOffsets": offsets_fault,
}
"""The options that say where a source begins: of several, Spark obeys the first one here."""
_OTHERS: Final = {
    "assign": _assign_fault,
    "maxOffsetsPerTrigger": _number_fault,
    "minOffsetsPerTrigger": _number_fault,
    "failOnDataLoss": _choice_fault,
}


def option_faults(options: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """What is wrong with the options of a Kafka source: the name of each, as it is written, and the fault.

    What has a reference in it is not judged: what stands for it is not known.
    """
    spelled = {name.lower(): name for name in options}
    obeyed = next((name for name in PLACES if name.lower() in spelled), None)
    rules = {**_OTHERS, **({} if obeyed is None else {obeyed: PLACES[obeyed]})}
    for name, rule in rules.items():
        given = spelled.get(name.lower())
        if given is None or "${" in str(options[given]):
            continue
        if fault := rule(options[given]):
            yield given, fault
    if obeyed == "startingOffsets" and _says_nothing(options, spelled):
        yield spelled[obeyed.lower()], "names no partition; it has to name all that are read"


def _says_nothing(options: Mapping[str, Scalar], spelled: Mapping[str, str]) -> bool:
    """Whether offsets are given, and of no partition. Where none is read, as by a pattern, that is right."""
    offsets = by_partition(options[spelled["startingoffsets"]])
    named = assigned(options.get(spelled.get("assign", ""))) or {}
    reads_some = "subscribe" in spelled or any(named.values())
    return offsets is not None and not any(offsets.values()) and reads_some


def option_problems(options: Mapping[str, Scalar], path: str) -> Iterator[Problem]:
    """The same with the place of each in the definition, `path` being that of the options."""
    for name, fault in option_faults(options):
        yield Problem(path_to(path, name), fault)
