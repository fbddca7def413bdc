"""The contract as tests read it: sections of docs/protocol.md and docs/architecture.md, tables of fields."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.inspect import StructType, type_info

from tests.fakes.endpoints import api_endpoints
from tests.unit.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("protocol", "architecture")}
_HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? (.+)$", re.MULTILINE)
_TABLE = re.compile(
    r"(?:[Rr]equest|Answer|document) `(\w+)`[^\n]*:\n\n"
    r"\| field \|(?: default \|)? meaning \|\n\|[-|]+\n((?:\|.*\n)+)"
)
_BODY = re.compile(r"^\| `([A-Z]\w+)` \| (`.*`) \|$", re.MULTILINE)


def sections(page: str) -> dict[str, set[str]]:
    """The number of each section, and the headings of it and of those below it."""
    found: dict[str, set[str]] = {}
    for number, title in _HEADING.findall(PAGES[page]):
        found.setdefault(number, set()).add(title)
        found.setdefault(number.partition(".")[0], set()).add(title)
    return found


def field_tables() -> dict[str, list[tuple[str, ...]]]:
    """The rows of each table of fields: the name, and the default if the table has that column."""
    return {
        name: [tuple(cell.strip(" `|") for cell in row.split(" | ")[:-1]) for row in rows.splitlines()]
        for name, rows in _TABLE.findall(PAGES["protocol"])
    }


def listed_fields() -> dict[str, list[str]]:
    """The bodies that are told in a line each."""
    return {name: re.findall(r"`(\w+)`", fields) for name, fields in _BODY.findall(PAGES["protocol"])}


def structs_in(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """`kind` and every Struct that a field of it may hold, however deep."""
    pending: list[object] = [type_info(kind)]
    while pending:
        each = pending.pop()
        if isinstance(each, StructType):
            yield each.cls
            pending += [field.type for field in each.fields]
        for name in ("item_type", "item_types", "value_type", "types", "type"):
            inner = getattr(each, name, ())
            pending += inner if isinstance(inner, tuple) else [inner]


def default_of(field: msgspec.structs.FieldInfo) -> str:
    """As the tables have it: empty for a field that is required, or left out where it does not apply."""
    if field.default_factory is not msgspec.NODEFAULT:
        return json.dumps(msgspec.to_builtins(field.default_factory()))
    if field.default is msgspec.NODEFAULT or field.default is msgspec.UNSET:
        return ""
    return json.dumps(msgspec.to_builtins(field.default))


def bodies() -> list[type[msgspec.Struct]]:
    """Of all requests and answers, and what is in them, each once, in the order of the operations."""
    kinds = [kind for each in api_endpoints() for kind in (each.body, each.response) if kind is not None]
    return list(dict.fromkeys(struct for kind in kinds for struct in structs_in(kind)))
