"""Where the rows of a task come from: `source` or `sources` in its definition (protocol §6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from definition.intervals import trigger_interval_fault
from definition.kafka_options import option_faults
from definition.reading import Constraint, Section, path_to, readable
from definition.references import find_problems, option_problems
from definition.values import (
    IDENTIFIER,
    ConsumerGroup,
    Format,
    LiteralText,
    Scalar,
    SchemaText,
    nesting_fault,
)
from protocol.connectors import KAFKA, needed
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_LINES = frozenset({"json", "csv"})
"""Formats of files of which each line is a row."""
ONLY_SOURCE = "source"
"""The view that a definition with one source reads."""
_VIEW = re.compile(rf"{IDENTIFIER}\Z")


def view_fault(name: str) -> str | None:
    """What is wrong with a name that SQL is to read a source by."""
    return None if _VIEW.match(name) else "is no name for a view: letters, digits and _, no digit first"


def whole_number(value: str) -> int | None:
    """The number that Spark reads an option of this text for; None if it is none, which Spark refuses."""
    return int(value[:_DIGITS]) if _WHOLE_NUMBER.fullmatch(value) else None


class Payload(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the bytes of Kafka's keys or values become columns.

    `schema` is Spark's (`id BIGINT, name STRING`) for json and csv, and Avro's own JSON for avro; protobuf
    takes a `message` and the file of its `descriptor`, as `protoc --descriptor_set_out` writes it, instead.
    `on_error` is what becomes of a row that cannot be taken apart: `fail` fails its batch, with `null` (or
    JSON's null) it is what Spark itself makes of it, which is null for all that it cannot read.
    """

    format: Literal["json", "csv", "avro", "protobuf", "text"]
    schema: SchemaText | None = None
    message: LiteralText | None = None
    descriptor: LiteralText | None = None
    options: dict[str, Scalar] = msgspec.field(default_factory=dict)
    on_error: Literal["fail", "null"] | None = "fail"

    @property
    def fails(self) -> bool:
        """Whether a row that cannot be taken apart fails its batch."""
        return self.on_error == "fail"

    def faults(self) -> Iterator[Problem]:
        """Each format has what it is taken apart by, and nothing that only another one reads."""
        if not readable(self.format):
            return
        yield from find_problems(self.options, "options")
        needs = _NEEDS[self.format]
        for name in ("schema", "message", "descriptor"):
            given = getattr(self, name)
            if name in needs and given is None:
                yield Problem(name, f"is required with format {self.format}: {needs[name]}")
            if name not in needs and given is not None:
                yield Problem(name, f"does not go with format {self.format}")
        if self.format == "text" and self.options:
            yield Problem("options", "does not go with format text")
        for name, value in self.options.items() if readable(self.options) else ():
            fault = self._option_fault(name.lower(), str(value))
            if fault is not None:
                yield Problem(path_to("options", name), fault)
        yield from self._name_faults() if readable(self.options) else ()

    def _name_faults(self) -> Iterator[Problem]:
        """Spark does not look at the case of names, and so takes either of two."""
        seen: dict[str, str] = {}
        for name in self.options:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                alike = "has two names that differ in case only, which Spark does not tell apart"
                yield Problem("options", f"{alike}: {other}, {name}")

    def _option_fault(self, name: str, value: str) -> str | None:
        only_with_null = _ONLY_WITH_NULL.get((self.format, name))
        if only_with_null is not None and self.fails:
            return f"goes with on_error: null only: {only_with_null}"
        if self.format == "csv" and name in _ROOM:
            number = whole_number(value)
            if number is not None and not 1 <= number <= _ROOM[name]:
                return f"expected 1 to {_ROOM[name]:,}"
        return nesting_fault(value) if name == "avroschema" else None


MOST_COLUMNS = 1_000_000
"""How many columns a value of CSV may have."""
_ROOM = {"maxcolumns": MOST_COLUMNS, "inputbuffersize": 10_000_000}
"""What Spark's parser of CSV makes room for before it has read anything: of more, the JVM would end."""
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS = 20
"""More of a number than tells that it is too large."""
_ONE_VARIANT = "in a row of one variant, nobody finds what is no row"
_ONLY_WITH_NULL = {
    ("json", "singlevariantcolumn"): _ONE_VARIANT,
    ("csv", "singlevariantcolumn"): _ONE_VARIANT,
    ("avro", "avroschemaurl"): "nothing can be added to a schema in a file; give it as avroSchema",
}
_DDL = "its columns, as in id BIGINT, name STRING"
_NEEDS = {
    "json": {"schema": _DDL},
    "csv": {"schema": _DDL},
    "avro": {"schema": "Avro's own, as JSON in a text"},
    "protobuf": {
        "message": "the name of the message",
        "descriptor": "the file that protoc --descriptor_set_out has written, where workers see it",
    },
    "text": {},
}


class Watermark(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How late rows may be: `delay` behind the latest time in `column`; what is later may be dropped."""

    column: LiteralText
    delay: Annotated[str, Constraint(trigger_interval_fault)]


class Source(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where rows come from: a format of Spark's, or a `table`.

    A `static` one is not streamed, but read as a whole, to be joined with what is. `watermark` says how late
    rows may be, which state needs that is to end some day. `key` and `value` take apart what Kafka has;
    `commit_group` is the consumer group that Kafka's own tools find its progress under.
    """

    format: Format | None = None
    table: LiteralText | None = None
    schema: SchemaText | None = None
    options: dict[str, Scalar] = msgspec.field(default_factory=dict)
    static: bool = False
    watermark: Watermark | None = None
    key: Payload | None = None
    value: Payload | None = None
    commit_group: ConsumerGroup | None = None

    @property
    def is_kafka(self) -> bool:
        """Whether it is a Kafka topic."""
        return self.format is not None and self.format.lower() == KAFKA

    @property
    def can_be_unreadable(self) -> bool:
        """Whether some of its rows may not be what its schema says, and can be told from the others."""
        payloads = [each for each in (self.key, self.value) if each is not None and each.fails]
        return bool(payloads) or (self.format is not None and self.format.lower() in BY_LINES)

    @property
    def shown(self) -> str:
        """What a person knows it by: its format, or its table."""
        return f"table {self.table}" if self.format is None else self.format

    @property
    def needs(self) -> Iterator[str]:
        """The formats that a Spark may lack: its own, and those that its bytes are taken apart by."""
        payloads = (
            each.format for each in (self.key, self.value) if each is not None and each.format == "avro"
        )
        return (name for each in (self.format, *payloads) if (name := needed(each)) is not None)

    def faults(self) -> Iterator[Problem]:
        """It says what it is, and what is only Kafka's stands beside Kafka only."""
        yield from option_problems(self.options, "options")
        if self.format is None and self.table is None:
            yield Problem("format", "is required, unless there is a table")
        if self.table is not None and self.schema is not None:
            yield Problem("schema", "does not go with table, which has one")
        if not readable(self.format):
            return
        if not self.is_kafka:
            for name in ("key", "value", "commit_group"):
                if getattr(self, name) is not None:
                    yield Problem(name, f"goes with format {KAFKA} only")
        else:
            yield from self._kafka_faults()
        if self.static is True and self.watermark is not None:
            yield Problem("watermark", "does not go with static: nothing of it comes later")
        if self.static is True and self.commit_group is not None:
            yield Problem("commit_group", "does not go with static: what is read as a whole has no progress")

    def _kafka_faults(self) -> Iterator[Problem]:
        if self.schema is not None:
            yield Problem("schema", "does not go with format kafka; what its values are is value.schema")
        if readable(self.options):
            for name, fault in option_faults(self.options):
                yield Problem(path_to("options", name), fault)
