"""What a source asks of its topics and they do not have; rules without I/O.

Spark finds out in the first batch, and then says that some data may have been lost, or that a server does not
host a partition, and not which. What Spark does with each was tried with 4.1.1 (docs/connectors.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from worker.lag.measure import PartitionState
from worker.lag.offset_log import assigned_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.lag.offset_log import Offsets

LOSS = "[KAFKA_DATA_LOSS]"
"""How a cause begins that says that rows are not there any more; Spark's own name for that."""
_RESET = (
    "begin elsewhere with `sparkherd tasks reset` (at the earliest, or --offset startingOffsets=…), or bring"
    " the rows back and `sparkherd tasks restart`"
)
_ACCEPT = f"accept that with `failOnDataLoss: false` in the source's options, {_RESET}"
_ANEW = f"the topic was made anew or cut off; {_RESET}"
_UNKNOWN = "is not there, or the source's user may not see it; create it, or correct the option"

Topics: TypeAlias = Mapping[str, Mapping[int, PartitionState]]


class Read(NamedTuple):
    """What a checkpoint says of topics: the next offsets to read, where a batch that was begun ends, and ids.

    The ids are those that the topics had when the task was started last, as far as they were noted.
    """

    committed: Offsets
    planned: Offsets = MappingProxyType({})  # type: ignore[assignment]  # never written to
    ids: Mapping[str, str] = MappingProxyType({})


class Missing(NamedTuple):
    """What is not there, `option` being what asks for it; whether another try would say the same."""

    option: str | None
    found: str
    permanent: bool = True


def missing(options: Mapping[str, Any], read: Read | None, topics: Topics) -> Missing | None:
    """The first thing that a source asks for in vain; None if all is there, as far as brokers can tell.

    Args:
        options: the source's.
        read: what its checkpoint says; None if it begins where `options` say.
        topics: what the brokers say of the topics that it reads.
    """
    given = {name.lower(): value for name, value in options.items()}
    first = next(_asked_for(given, topics), None)
    if first is not None:
        return first
    accepts = str(given.get("failondataloss", True)).lower() == "false"
    losses = _begun(given, topics) if read is None else _lost(read, topics, accepts=accepts)
    return next(losses, None)


def _asked_for(given: Mapping[str, Any], topics: Topics) -> Iterator[Missing]:
    """Topics and partitions by name. A topic may be made any moment, so another try is worth it."""
    for name in str(given.get("subscribe", "")).split(","):
        if name.strip() and name.strip() not in topics:
            yield Missing("subscribe", f"topic {name.strip()} {_UNKNOWN}", permanent=False)
    for topic, numbers in (assigned_of(given) or {}).items():
        if topic not in topics:
            yield Missing("assign", f"topic {topic} {_UNKNOWN}", permanent=False)
        for number in numbers:
            if topic in topics and number not in topics[topic]:
                yield Missing("assign", f"topic {topic} has no partition {number}; correct the option")


def _lost(read: Read, topics: Topics, *, accepts: bool) -> Iterator[Missing]:
    """Rows that the checkpoint wants. With a topic that was made anew Spark fails, whatever it is told."""
    for topic, partitions in sorted(read.committed.items()):
        for number, wanted in sorted(partitions.items()):
            state = topics.get(topic, {}).get(number)
            place = f"{LOSS} topic {topic}, partition {number}: wants offset {wanted}"
            if state is None:
                yield Missing(None, f"{place}, and there is no such partition: {_ANEW}")
            elif wanted > state.end:
                yield Missing(None, f"{place}, and the next row will get {state.end}: {_ANEW}")
            elif wanted < state.begin and not accepts:
                gone = f"{place}, the earliest there is {state.begin} ({state.begin - wanted} rows are gone)"
                yield Missing(None, f"{gone}: {_ACCEPT}")
            else:
                ends = read.planned.get(topic, {}).get(number, wanted)
                yield from _unfit(f"{LOSS} topic {topic}, partition {number}", wanted, ends, state)
    if not accepts:
        yield from _made_anew(read, topics)


def _unfit(place: str, wanted: int, ends: int, state: PartitionState) -> Iterator[Missing]:
    """A batch that was begun is done again as it was planned, perhaps while a topic was replaced."""
    if ends < wanted or ends > state.end:
        found = f"{place}: the batch that was begun is to go from offset {wanted} to {ends}"
        yield Missing(None, f"{found}, and the next row will get {state.end}: {_ANEW}")


def _made_anew(read: Read, topics: Topics) -> Iterator[Missing]:
    """A topic that has as many rows again looks like the one before, but for its id."""
    for topic, before in sorted(read.ids.items()):
        now = next((state.topic_id for state in topics.get(topic, {}).values()), None)
        if topic in read.committed and now not in {None, before}:
            found = f"{LOSS} topic {topic} was made anew (its id was {before}, and is {now})"
            yield Missing(None, f"{found}, and its first rows would be left out: {_ACCEPT}")


def _begun(given: Mapping[str, Any], topics: Topics) -> Iterator[Missing]:
    """Offsets by partition, of which Spark wants all."""
    option = "startingOffsets"
    offsets = _by_partition(given.get(option.lower()))
    for topic, partitions in topics.items() if offsets else ():
        for number, state in partitions.items():
            wanted = offsets.get(topic, {}).get(number)
            place = f"topic {topic}, partition {number}"
            if wanted is None:
                yield Missing(option, f"says nothing of {place}; it has to name all partitions")
            elif wanted > state.end:
                found = f"{place}: wants offset {wanted}, and the next row will get {state.end}"
                yield Missing(option, f"{found}; correct it, -1 is the end")
            elif 0 <= wanted < state.begin:
                found = f"{place}: wants offset {wanted}, the earliest there is {state.begin}"
                yield Missing(option, f"{found}; correct it, -2 is the earliest")
    for topic, numbers in offsets.items():
        for number in numbers:
            if number not in topics.get(topic, {}):
                yield Missing(option, f"topic {topic} has no partition {number}; correct it")


def _by_partition(value: Any) -> Offsets:
    try:
        return msgspec.json.decode(value if isinstance(value, str) else b"", type=dict[str, dict[int, int]])
    except msgspec.DecodeError:
        return {}
