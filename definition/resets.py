"""Starting a task anew: where its source can be told to begin, and what that means for its sink.

What a source's options say about where to begin counts only for a query without a checkpoint. So a reset
gives the task an empty one, and says where to begin with it (protocol §5; after KIP-875 of Kafka Connect).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from definition.document import MOST_BYTES
from definition.kafka_options import PLACES
from definition.options import lowered, moment_fault, without
from definition.reading import path_to, read
from definition.sinks.registry import sink_format
from protocol.connectors import AVRO, FILES, KAFKA
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import EARLIEST, Options, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from definition.kafka_options import Rule
    from definition.values import Scalar
    from protocol.messages.tasks import Offsets


@dataclass(frozen=True, slots=True)
class Beginning:
    """How sources of one format are told where to begin.

    `places` are the options for it, one of which is enough, each with what may be wrong with its value;
    `earliest` says what is set to begin at the earliest offsets, where a new query would not do so anyway.
    """

    places: Mapping[str, Rule] = field(default_factory=dict)
    earliest: Mapping[str, Scalar] = field(default_factory=dict)


BEGINNINGS: Mapping[str, Beginning] = {
    KAFKA: Beginning(PLACES, {"startingOffsets": "earliest"}),  # Spark's own default is latest
    "rate-micro-batch": Beginning({"startTimestamp": lambda value, _: moment_fault(value)}),
    **dict.fromkeys((*FILES, AVRO, "rate", "socket"), Beginning()),
}
"""Spark's own sources. Others may be given any options, and it is theirs to make sense of them."""


class _End(msgspec.Struct):
    """A source or sink in a definition."""

    format: str | None = None
    table: str | None = None
    options: dict[str, Any] = {}
    static: bool = False

    @property
    def shown(self) -> str:
        """What a person knows it by."""
        return f"table {self.table}" if self.format is None else self.format


class Ends(msgspec.Struct):
    """What of a definition a reset goes by; a task without a source has an entry point."""

    source: _End | None = None
    sources: dict[str, _End] = {}
    sink: _End | None = None

    @property
    def streams(self) -> dict[str, _End]:
        """The sources that have offsets, by the name that stands before an option; the only one has none."""
        if self.source is not None:
            return {"": self.source}
        return {name: source for name, source in self.sources.items() if not source.static}


def read_ends(document: bytes | msgspec.Raw) -> Ends:
    """The ends of a definition that was checked before."""
    return msgspec.json.decode(document, type=Ends)


def read_offsets(document: bytes | msgspec.Raw) -> tuple[Offsets, tuple[Problem, ...]]:
    """JSON as what a reset takes for `offsets`; of use only if there is no problem."""
    if len(document) > MOST_BYTES:
        return EARLIEST, (Problem("offsets", f"is larger than {MOST_BYTES} bytes"),)
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return EARLIEST, (Problem("offsets", f"is not JSON: {error}"),)
    if value == EARLIEST:
        return EARLIEST, ()
    if not isinstance(value, dict):
        message = f'expected "{EARLIEST}", or an object with options of the source to begin with'
        return EARLIEST, (Problem("offsets", message),)
    return read(value, Options, "offsets")


def refused_offsets(problems: Iterable[Problem]) -> RefusedError:
    """The refusal of offsets that are wrong in these ways."""
    text = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
    return RefusedError(ErrorCode.INVALID_REQUEST, text)


def offsets_of(view: str, offsets: Offsets) -> Offsets:
    """What `offsets` say of one source; of several, each has its name before it, as `orders.startingOffsets`.

    Args:
        view: the source's name; "" if it is the only one.
        offsets: of a reset.
    """
    if not view or isinstance(offsets, str):
        return offsets
    before = f"{view}."
    return {name.removeprefix(before): value for name, value in offsets.items() if name.startswith(before)}


def faults(ends: Ends, offsets: Offsets) -> Iterator[Problem]:
    """What the task's sources cannot make sense of, as far as that is known here."""
    streams = ends.streams
    if not streams or isinstance(offsets, str):
        return
    for name in offsets:
        if ends.source is None and name.partition(".")[0] not in streams:
            named = ", ".join(f"{each}.OPTION" for each in streams)
            yield Problem(path_to("offsets", name), f"names no source that has offsets; expected {named}")
    for view, source in streams.items():
        yield from _faults_of(source, view, offsets_of(view, offsets))


def _faults_of(source: _End, view: str, offsets: Offsets) -> Iterator[Problem]:
    format_ = source.format or ""
    known = BEGINNINGS.get(format_.lower())
    if known is None or isinstance(offsets, str):
        return
    places, given = lowered(known.places), lowered(source.options)
    for name, value in offsets.items():
        path = path_to(path_to("offsets", view) if view else "offsets", name)
        if name.lower() not in places:
            yield Problem(path, _does_not_begin_there(format_, known))
        elif fault := places[name.lower()](value, given):
            yield Problem(path, fault)
    if len(offsets) > 1:
        whose = f" for {view}" if view else ""
        yield Problem("offsets", f"names more than one place to begin{whose}")


def _does_not_begin_there(source: str, known: Beginning) -> str:
    if not known.places:
        return f'a source {source} can only begin at its earliest offsets: "{EARLIEST}"'
    return f"does not say where a source {source} begins; {', '.join(known.places)} do"


def begin_with(source: str, options: Mapping[str, Scalar], offsets: Offsets) -> dict[str, Scalar]:
    """The options of a source of that format with which a query begins after a reset.

    What they said before about where to begin gives way, in whichever spelling: Spark ignores the case of
    names, and of two options that contradict each other Kafka's source obeys the one it prefers.
    """
    known = BEGINNINGS.get(source.lower(), Beginning())
    chosen = known.earliest if offsets == EARLIEST else offsets
    if not chosen:
        return dict(options)
    return without(options, {*lowered(chosen), *lowered(known.places)}) | dict(chosen)


def meaning(ends: Ends, offsets: Offsets) -> str:
    """What will be read again, and what becomes of it in the sink; for people."""
    return f"{_read_again(ends, offsets)} {_written_again(ends.sink)} {_STATE}"


_STATE = "State begins empty: aggregates, joins and dropDuplicates know nothing of what was before."


def _read_again(ends: Ends, offsets: Offsets) -> str:
    streams = ends.streams
    if not isinstance(offsets, str) and offsets:
        shown = ", ".join(f"{name}={value}" for name, value in offsets.items())
        if not streams:
            return (
                f"The entry point is given {shown} over its options, and begins where it lets itself begin."
            )
        return f"Reading begins anew at {shown}; what is before that and not in the sink yet stays out of it."
    if not streams:
        return "The entry point begins anew, wherever it lets a new query begin."
    unsure = [source for source in streams.values() if (source.format or "").lower() not in BEGINNINGS]
    if offsets == EARLIEST and not unsure:
        return "Everything that the source still has is read again."
    shown = ", ".join(source.shown for source in unsure or streams.values())
    return f"Reading begins anew where the source {shown} and its options let a new query begin."


def _written_again(sink: _End | None) -> str:
    if sink is None:
        return "What the entry point has written stays; what it writes again is its own affair."
    if (own := sink_format(sink.format)) is not None:
        return own.written_again(sink.table, sink.options)
    if (sink.format or "").lower() in FILES | {AVRO}:
        return (
            "Spark's file sink leaves out batches whose numbers it has seen: empty its folder,"
            " _spark_metadata included, before you resume the task, or rows are lost."
        )
    return f"The sink {sink.shown} has no fence: what it does with rows it gets again is unknown."
