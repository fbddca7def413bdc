"""Where a quarantine elsewhere is, as its definition says it: for a person, and beside another one."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from definition.same_database import same_database, same_table, shown_url
from definition.same_place import folder_of, table_of
from definition.sinks.sql import SQL_SINK
from definition.tables import table_fault

if TYPE_CHECKING:
    from definition.quarantine import Quarantine
    from definition.sink import Sink

_LOGIN: Final = re.compile(r"//[^/@]*:[^/@]*@")
_PASSWORD: Final = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*")
_PLACES: Final = ("url", "table", "path", "branch")
"""Options that say where a sink's rows are."""


def shown(quarantine: Quarantine) -> str:
    """Its format, and its path, table or URL; without passwords, and with references as they stand."""
    sink = quarantine.sink
    if sink is None:
        return ""
    options = sink.options
    told: list[str] = []
    if sink.format == SQL_SINK:
        told = [shown_url(str(options.get("url"))), f"table {options.get('table')}"]
    elif folder_of(sink) is not None:
        told = ["path " + _LOGIN.sub("//***@", str(options.get("path")))]
    elif sink.table is not None:
        told = [f"table {sink.table}"]
    return f"{sink.format} ({', '.join(told)})" if told else str(sink.format)


def are_one(one: Quarantine | None, other: Quarantine | None) -> bool:
    """Whether two are one quarantine elsewhere, however its place is written."""
    if one is None or other is None or one.sink is None or other.sink is None:
        return one == other
    if one.format != other.format:
        return False
    if one.format == SQL_SINK:
        return one == other or _is_table(one.sink, other.sink)
    first, second = (
        (folder_of(sink), table_of(sink), sink.options.get("branch", "main"))
        for sink in (one.sink, other.sink)
    )
    return one == other or (first == second and first[:2] != (None, None))


def fence_of(place: Sink) -> str:
    """A short text that no other place has, by which the sink knows replays from there.

    A place that is written in another way has another one, which does no harm: a replay's name has its own.

    Args:
        place: of the quarantine, with its references resolved; its passwords are no part of the text.
    """
    options = [_PASSWORD.sub("", _LOGIN.sub("//", str(place.options.get(each)))) for each in _PLACES]
    said = msgspec.json.encode([place.format, place.table, options])
    return sha256(said).hexdigest()[:12]


def _is_table(one: Sink, other: Sink) -> bool:
    """Whether they are one table of SQL, with one table of fences: `options` of a URL may set the schema."""
    tables = [sink.options.get("table") for sink in (one, other)]
    urls = [sink.options.get("url") for sink in (one, other)]
    if not all(isinstance(table, str) and table_fault(table) is None for table in tables):
        return False
    if not same_database(*urls) or (urls[0] != urls[1] and any("options" in str(url) for url in urls)):
        return False
    first, second = map(str, tables)
    return same_table(urls[0], first, second) and same_table(urls[0], second, first)
