"""Starting a task anew: where its source can be told to begin, and what that means for its sink.

What a source's options say about where to begin counts only for a query without a checkpoint. So a reset
gives the task an empty one, and says where to begin with it (protocol §5; after KIP-875 of Kafka Connect).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from definition.document import FILES_SINK, MOST_BYTES, SQL_SINK
from definition.reading import path_to, read
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import EARLIEST, Options, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from definition.document import Scalar
    from protocol.messages.tasks import Offsets


@dataclass(frozen=True, slots=True)
class Beginning:
    """How sources of one format are told where to begin.

    `places` are the options for it, one of which is enough, each with what may be wrong with its value;
    `earliest` says what is set to begin at the earliest offsets, where a new query would not do so anyway.
    """

    places: Mapping[str, Callable[[Scalar], str | None]] = field(default_factory=dict)
    earliest: Mapping[str, Scalar] = field(default_factory=dict)


def _by_partition(value: Scalar) -> str | None:
    """What is wrong with `{"topic": {"0": 23}}`, which Spark's Kafka source takes as text."""
    try:
        msgspec.json.decode(value if isinstance(value, str) else b"", type=dict[str, dict[str, int]])
    except msgspec.DecodeError:
        return 'expected JSON as text, as {"TOPIC": {"PARTITION": NUMBER}}'
    return None


def _kafka_offsets(value: Scalar) -> str | None:
    if value in ("earliest", "latest"):
        return None
    fault = _by_partition(value)
    return fault and f"expected earliest, latest, or {fault.removeprefix('expected ')}"


def _moment(value: Scalar) -> str | None:
    is_whole = str(value).isascii() and str(value).isdecimal()
    return None if is_whole else "expected a time in whole milliseconds since 1970"


FILES = ("json", "csv", "parquet", "orc", "text", "xml", "avro", "binaryfile")
BEGINNINGS: Mapping[str, Beginning] = {
    "kafka": Beginning(
        {
            "startingOffsets": _kafka_offsets,
            "startingOffsetsByTimestamp": _by_partition,
            "startingTimestamp": _moment,
        },
        {"startingOffsets": "earliest"},  # Spark's own default is latest
    ),
    "rate-micro-batch": Beginning({"startTimestamp": _moment}),
    **dict.fromkeys((*FILES, "rate", "socket"), Beginning()),
}
"""Spark's own sources. Others may be given any options, and it is theirs to make sense of them."""


class _End(msgspec.Struct):
    """A source or sink in a definition."""

    format: str
    options: dict[str, Any] = {}


class Ends(msgspec.Struct):
    """What of a definition a reset goes by; a task without a source has an entry point."""

    source: _End | None = None
    sink: _End | None = None


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


def faults(ends: Ends, offsets: Offsets) -> Iterator[Problem]:
    """What the task's source cannot make sense of, as far as that is known here."""
    if ends.source is None or offsets == EARLIEST:
        return
    source = ends.source.format
    known = BEGINNINGS.get(source.lower())
    if known is None:
        return
    places = {name.lower(): fault for name, fault in known.places.items()}
    for name, value in offsets.items():
        if name.lower() not in places:
            yield Problem(path_to("offsets", name), _does_not_begin_there(source, known))
        elif fault := places[name.lower()](value):
            yield Problem(path_to("offsets", name), fault)
    if len(offsets) > 1:
        yield Problem("offsets", "names more than one place to begin")


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
    rivals = {name.lower() for name in (*chosen, *known.places)}
    return {name: value for name, value in options.items() if name.lower() not in rivals} | dict(chosen)


def meaning(ends: Ends, offsets: Offsets) -> str:
    """What will be read again, and what becomes of it in the sink; for people."""
    return f"{_read_again(ends, offsets)} {_written_again(ends.sink)} {_STATE}"


_STATE = "State begins empty: aggregates, joins and dropDuplicates know nothing of what was before."


def _read_again(ends: Ends, offsets: Offsets) -> str:
    if offsets and offsets != EARLIEST:
        shown = ", ".join(f"{name}={value}" for name, value in offsets.items())
        if ends.source is None:
            return (
                f"The entry point is given {shown} over its options, and begins where it lets itself begin."
            )
        return f"Reading begins anew at {shown}; what is before that and not in the sink yet stays out of it."
    if ends.source is None:
        return "The entry point begins anew, wherever it lets a new query begin."
    if offsets == EARLIEST and ends.source.format.lower() in BEGINNINGS:
        return "Everything that the source still has is read again."
    return f"Reading begins anew where the source {ends.source.format} and its options let a new query begin."


def _written_again(sink: _End | None) -> str:
    if sink is None:
        return "What the entry point has written stays; what it writes again is its own affair."
    if sink.format == SQL_SINK:
        return _into_table(sink.options)
    if sink.format == FILES_SINK:
        return (
            f"The files in {sink.options.get('path')} stay, and rows that are read again are written again:"
            " remove its folders before you resume the task, unless you want them twice."
        )
    if sink.format.lower() in FILES:
        return (
            "Spark's file sink leaves out batches whose numbers it has seen: empty its folder,"
            " _spark_metadata included, before you resume the task, or rows are lost."
        )
    return f"The sink {sink.format} has no fence: what it does with rows it gets again is unknown."


def _into_table(options: Mapping[str, Any]) -> str:
    stay = f"The rows in the table {options.get('table')} stay"
    if options.get("mode") == "upsert":
        return f"{stay}, and rows that are read again replace them by key ({', '.join(options['key'])})."
    return (
        f"{stay}, and rows that are read again are written again: empty the table before you resume the task,"
        " when its status shows no cause, unless you want them twice."
    )
