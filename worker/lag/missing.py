"""What a source asks of its topics and they do not have; rules without I/O.

Spark finds out in the first batch, and then says that some data may have been lost, or that a server does not
host a partition, and not which. What Spark does with each was tried with 4.1.1 (docs/connectors.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from definition.kafka_options import by_partition, obeyed, option_faults
from definition.options import lowered, written
from worker.lag.measure import PartitionState
from worker.lag.subscription import assigned_of, named_of, pattern_of

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
_LEAVE = "begin anew with `sparkherd tasks reset`, or set `failOnDataLoss: false`"
_ANEW = f"the topic was made anew or cut off; {_ACCEPT}"
_UNKNOWN = "is not there, or the source's user may not see it; create it, or correct the option"
_UNFOUND = (
    "is not there, or the pattern does not find it, or the source's user may not see it; create it, or"
    " correct the options"
)

Ids: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Of topics, by the id of their cluster and by their name: each cluster gives out its own.

Of a name there are several where clusters were set up with one id, as by images that bring it along.
"""
Topics: TypeAlias = Mapping[str, Mapping[int, PartitionState]]


class Read(NamedTuple):
    """What a checkpoint says of a source: the next offsets to read, where a begun batch ends, and ids.

    The first offsets are those where the last finished batch ended, or before that those that the source
    began at. The ids are those that topics had when the task was started last, as far as they were noted.
    """

    begins: Offsets = MappingProxyType({})  # type: ignore[assignment]  # never written to
    planned: Offsets = MappingProxyType({})  # type: ignore[assignment]  # likewise
    ids: Ids = MappingProxyType({})


class Missing(NamedTuple):
    """What is not there, `option` being what asks for it; whether another try would say the same."""

    option: str | None
    found: str
    permanent: bool = True


class _Place(NamedTuple):
    """A partition, the offset that is read next of it, and the one where a batch that was begun ends."""

    topic: str
    number: int
    begins: int | None
    ends: int | None

    @property
    def shown(self) -> str:
        return f"{LOSS} topic {self.topic}, partition {self.number}"


class _Subscription(NamedTuple):
    """What a source's options have it read: topics by name, these partitions of theirs, or by a pattern."""

    topics: Sequence[str]
    assigned: Mapping[str, frozenset[int]] | None
    has_pattern: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> _Subscription:
        """By options in any spelling."""
        return cls(named_of(options), assigned_of(options), pattern_of(options) is not None)

    @property
    def option(self) -> str:
        """Where the names stand."""
        return "subscribe" if self.assigned is None else "assign"

    def names(self, topic: str, number: int) -> bool:
        """Whether it has the source read a partition, if that is there; by a pattern it may."""
        if self.assigned is not None:
            return number in self.assigned.get(topic, ())
        return self.has_pattern or topic in self.topics


def missing(options: Mapping[str, Any], reads: Sequence[Read], topics: Topics) -> Missing | None:
    """The first thing that a source asks for in vain; None if all is there, as far as brokers can tell.

    Args:
        options: the source's.
        reads: what its checkpoint says, of each time that the query reads it; nothing if it begins where
            `options` say.
        topics: what the brokers say of the topics that it reads, and of those that are `wanted_besides`.
    """
    given = lowered(options)
    accepts = str(given.get("failondataloss", True)).lower() == "false"
    subscription = _Subscription.of(options)
    lost = chain.from_iterable(_lost(subscription, read, topics, accepts=accepts) for read in reads)
    losses = lost if reads else _begun(given, subscription, topics, accepts=accepts)
    faults = (Missing(name, fault) for name, fault in option_faults(options))
    told = next(chain(faults, _asked_for(subscription, topics), losses), None)
    if told is None or told.option is None:
        return told
    return told._replace(option=written(options, told.option))


def wanted_besides(options: Mapping[str, Any], reads: Sequence[Read]) -> dict[str, list[int]]:
    """Partitions that the options do not name any more, and that a batch which was begun is to be read from.

    Spark does that batch as it was planned, and waits for ever for what is not there: brokers have to be
    asked for these, too.
    """
    subscription = _Subscription.of(options)
    wanted: dict[str, list[int]] = {}
    for place in (place for read in reads for place in _places(read)):
        if not _is_done(place) and not subscription.names(place.topic, place.number):
            wanted.setdefault(place.topic, []).append(place.number)
    return wanted


def _asked_for(subscription: _Subscription, topics: Topics) -> Iterator[Missing]:
    """Topics and partitions by name. Each may be made any moment, so another try is worth it."""
    for name in subscription.topics:
        if name not in topics:
            yield Missing(subscription.option, f"topic {name} {_UNKNOWN}", permanent=False)
    for topic, numbers in (subscription.assigned or {}).items():
        for number in sorted(numbers):
            if topic in topics and number not in topics[topic]:
                yield _no_partition(subscription.option, topic, number)


def _no_partition(option: str, topic: str, number: int) -> Missing:
    found = f"topic {topic} has no partition {number}; give it more partitions, or correct the option"
    return Missing(option, found, permanent=False)


def _lost(subscription: _Subscription, read: Read, topics: Topics, *, accepts: bool) -> Iterator[Missing]:
    """Rows that the checkpoint wants."""
    for place in _places(read):
        state = topics.get(place.topic, {}).get(place.number)
        if not subscription.names(place.topic, place.number):
            if not accepts:
                yield _left_out(subscription.option, place)
            elif state is None:
                yield from _gone(place, accepts=accepts)
        elif state is None:
            yield from _gone(place, accepts=accepts)
        elif not accepts:
            yield from _out_of_reach(place, state)
    if not accepts:
        yield from _made_anew(read, topics)


def _places(read: Read) -> Iterator[_Place]:
    for topic in sorted({*read.begins, *read.planned}):
        begins, planned = read.begins.get(topic, {}), read.planned.get(topic, {})
        for number in sorted({*begins, *planned}):
            yield _Place(topic, number, begins.get(number), planned.get(number))


def _left_out(option: str, place: _Place) -> Missing:
    """A partition that the options name no more. Spark says of it that it was deleted."""
    found = f"does not name topic {place.topic}, partition {place.number}, which the checkpoint goes on with"
    return Missing(option, f"{found}: name it again; if it is to be left out for good, {_LEAVE}")


def _is_done(place: _Place) -> bool:
    """Whether no batch that was begun wants its rows."""
    return place.begins is None or place.ends in {None, place.begins}


def _gone(place: _Place, *, accepts: bool) -> Iterator[Missing]:
    """A partition that is not there, and may come. Spark leaves it out, unless a batch wants its rows."""
    if not _is_done(place):
        found = f"the batch that was begun is to go from offset {place.begins} to {place.ends}"
        yield Missing(
            None, f"{place.shown}: {found}, and the source has no such partition: {_RESET}", permanent=False
        )
    elif not accepts:
        wanted = "its rows" if place.begins is None else f"offset {place.begins}"
        found = f"{place.shown}: wants {wanted}, and the source has no such partition: {_ACCEPT}"
        yield Missing(None, found, permanent=False)


def _out_of_reach(place: _Place, state: PartitionState) -> Iterator[Missing]:
    """Rows that are gone, or were another topic's. A batch that was begun is done again as it was planned."""
    wanted = state.begin if place.begins is None else place.begins
    ends = wanted if place.ends is None else place.ends
    after = f"and the next row will get {state.end}: {_ANEW}"
    if wanted > state.end:
        yield Missing(None, f"{place.shown}: wants offset {wanted}, {after}")
    elif wanted < state.begin:
        gone = f"the earliest there is {state.begin} ({state.begin - wanted} rows are gone)"
        yield Missing(None, f"{place.shown}: wants offset {wanted}, {gone}: {_ACCEPT}")
    elif ends > state.end or (place.begins is not None and ends < wanted):
        planned = f"the batch that was begun is to go from offset {wanted} to {ends}"
        yield Missing(None, f"{place.shown}: {planned}, {after}")


def _made_anew(read: Read, topics: Topics) -> Iterator[Missing]:
    """A topic that has as many rows again looks like the one before, but for its id.

    In another cluster the topic of that name is a copy, and has another id as well.
    """
    for topic in sorted({*read.begins, *read.planned}):
        cluster, now = id_of(topics.get(topic, {}))
        before = read.ids.get(cluster or "", {}).get(topic, ())
        if before and now is not None and now not in before:
            found = f"{LOSS} topic {topic} was made anew (its id was {' or '.join(before)}, and is {now})"
            yield Missing(None, f"{found}, and its first rows would be left out: {_ACCEPT}")


def id_of(partitions: Mapping[int, PartitionState]) -> tuple[str | None, str | None]:
    """The id of a topic's cluster, and its own, as far as brokers tell them."""
    return next(((each.cluster_id, each.topic_id) for each in partitions.values()), (None, None))


def _begun(
    given: Mapping[str, Any], subscription: _Subscription, topics: Topics, *, accepts: bool
) -> Iterator[Missing]:
    """Offsets or times by partition, of which Spark wants all, where it goes by them."""
    option = obeyed(given)
    wanted = None if option is None else by_partition(given[option.lower()])
    if option is None or wanted is None:
        return
    for topic, partitions in topics.items():
        for number, state in partitions.items():
            at = wanted.get(topic, {}).get(number)
            place = f"topic {topic}, partition {number}"
            if at is None:
                yield Missing(option, f"says nothing of {place}; it has to name all partitions")
            elif option == "startingOffsets" and not accepts:
                yield from _off_limits(option, place, at, state)
    yield from _named_in_vain(option, wanted, subscription, topics)


def _off_limits(option: str, place: str, wanted: int, state: PartitionState) -> Iterator[Missing]:
    """An offset at which no row is, nor will be the next."""
    if state.end < wanted:
        found = f"{place}: wants offset {wanted}, and the next row will get {state.end}"
        yield Missing(option, f"{found}; correct it, -1 is the end")
    elif 0 <= wanted < state.begin:
        found = f"{place}: wants offset {wanted}, the earliest there is {state.begin}"
        yield Missing(option, f"{found}; correct it, -2 is the earliest")


def _named_in_vain(
    option: str, offsets: Offsets, subscription: _Subscription, topics: Topics
) -> Iterator[Missing]:
    """Partitions that are not read, or not there: Spark wants no others than those that it reads."""
    for topic, number in ((topic, number) for topic, numbers in offsets.items() for number in numbers):
        if not subscription.names(topic, number):
            found = f"names topic {topic}, partition {number}, which the source does not read; leave it out"
            yield Missing(option, found)
        elif topic not in topics:
            unknown = _UNFOUND if subscription.has_pattern else _UNKNOWN
            yield Missing(option, f"topic {topic} {unknown}", permanent=False)
        elif number not in topics[topic]:
            yield _no_partition(option, topic, number)
