"""Bad rows among the good ones: which they are, what is wrong with them, and where they have to be."""

from __future__ import annotations

import json
import random
import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tests.acceptance.chaos.rows import NULL, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.acceptance.chaos.flows import Flow


class Kind(Enum):
    """What is wrong with a row; its value is one of the rows' keys, in place of the true one."""

    REFUSED = "#"
    """The table has a constraint against it."""
    DROPPED = "!"
    """It violates an expectation, and is dropped."""
    VIOLATING = "?"
    """It violates an expectation, and is put aside."""
    MALFORMED = ""
    """It is no JSON, or not what the schema says."""


EVERY: Final[Mapping[Kind, int]] = {
    Kind.REFUSED: 1000,
    Kind.DROPPED: 200,
    Kind.VIOLATING: 100,
    Kind.MALFORMED: 100,
}
"""Of so many rows that follow each other one is so, at a place that is drawn; the rarer one has it."""
ALLOWED: Final = "allowed"
"""The name of a table's constraint."""
CONSTRAINT: Final = f"key <> '{Kind.REFUSED.value}'"
"""What it says."""
_KNOWN: Final = f"key <> '{Kind.VIOLATING.value}'"
_ANY: Final = "key IS NOT NULL"
"""The same expectation, when it has turned out that it was too strict."""
LOOSE: Final[Mapping[str, Any]] = {"allowUnquotedFieldNames": "true"}
"""Options by which JSON can be read that is none otherwise."""
_PUT_ASIDE_BY: Final[Mapping[Kind, tuple[str, tuple[str, ...]]]] = {
    Kind.REFUSED: ("refused", ("sink", ALLOWED)),
    Kind.VIOLATING: ("violation", ("known",)),
    Kind.MALFORMED: ("unreadable", ("source", "source.value")),
}
"""Reason and names: what cannot be read is called by its place, which is another one for Kafka; a row that a
table of Delta's refuses, by the constraint."""

Content: TypeAlias = "bytes | tuple[tuple[str, Any], ...]"
"""The bytes of a row that cannot be read; of another one its fields, for JSON is written in many ways."""


class Aside(NamedTuple):
    """A row that is put aside, by its number in the flow, -1 if it is none of it."""

    number: int
    reason: str
    content: Content


class Bad(NamedTuple):
    """A bad row as it was fed, and as it should have been written."""

    number: int
    kind: Kind
    line: bytes
    whole: bytes
    key: str
    value: float | None

    @property
    def aside(self) -> Aside | None:
        """As it has to be in the quarantine; None if it has to be nowhere."""
        if self.kind is Kind.DROPPED:
            return None
        reason, _ = _PUT_ASIDE_BY[self.kind]
        content = self.line if self.kind is Kind.MALFORMED else self._columns
        return Aside(self.number, reason, content)

    @property
    def needs_a_hand(self) -> bool:
        """No options make it readable: somebody has to write it anew."""
        return self.kind is Kind.MALFORMED and not _is_loose(self.number)

    @property
    def _columns(self) -> Content:
        """A field that is NULL is left out of a row of the result."""
        value = {} if self.value is None else {"value": self.value}
        return _content({"id": self.number, "key": self.key, **value})


class JsonRows(Rows):
    """Rows as JSON, of which the seed says which are bad; notes them at their flow."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def payload(self, flow: Flow) -> dict[str, Any]:
        """The columns are as in the tables."""
        options = dict(LOOSE) if flow.mended else {}
        return {"format": "json", "schema": flow.table.schema, "options": options}

    def line(self, flow: Flow, number: int, key: str, value: str) -> bytes:
        """As good or as bad as its number has it."""
        kind = self._kind(flow, number)
        read = None if value == NULL else float(value)
        shown = kind.value if kind is not None and kind.value else key
        row = {"id": number, flow.table.key: shown, flow.table.value: read}
        line = json.dumps(row).encode()
        if kind is None:
            return line
        bad = _broken(line, number) if kind is Kind.MALFORMED else line
        flow.bad[number] = Bad(number, kind, bad, line, shown, read)
        return bad

    def _kind(self, flow: Flow, number: int) -> Kind | None:
        """What is wrong with the flow's row of this number."""
        for kind, every in EVERY.items():
            block, at = divmod(number, every)
            if at == _drawn(f"{self._seed}/{flow.name}/{kind.name}/{block}", every):
                return kind
        return None


def rules(flow: Flow) -> dict[str, Any]:
    """What the flow's task is to do with them."""
    known = _ANY if flow.mended else _KNOWN
    return {
        "expect": [
            {"name": "known", "where": known, "on_violation": "quarantine"},
            {"name": "wanted", "where": f"key <> '{Kind.DROPPED.value}'", "on_violation": "drop"},
        ],
        "on_error": "quarantine",
    }


def read_aside(flow: Flow, reason: str, name: str, form: str, raw: bytes) -> Aside:
    """A row of the flow's quarantine; it is known by its number, wherever it should have been."""
    named = any(reason == why and name in names for why, names in _PUT_ASIDE_BY.values())
    said = reason if named else f"{reason} by {name}"
    if form == "row":
        fields = json.loads(raw)
        return Aside(fields["id"], said, _content(fields))
    return Aside(flow.numbers.get(raw, -1), said, raw)


def _content(fields: Mapping[str, Any]) -> Content:
    return tuple(sorted(fields.items()))


def _is_loose(number: int) -> bool:
    return number % 2 == 0


def _broken(line: bytes, number: int) -> bytes:
    """Names without quotes, in every second row; cut off, not what the schema says, no JSON, no text.

    Its number makes it one of its kind.
    """
    if _is_loose(number):
        return re.sub(rb'"(\w+)": ', rb"\1: ", line)
    shapes = (
        line[:-4],
        b'{"id": "no %d"}' % number,
        b"no JSON, %d" % number,
        b"\xff\xfe\x80 %d" % number,
        line[:-4] + b"\xc3(",
        "{Zürich, %d}".encode() % number,
    )
    return shapes[number // 2 % len(shapes)]


@cache
def _drawn(seed: str, below: int) -> int:
    return random.Random(seed).randrange(below)
