"""Names of tables in a definition: `delays`, `herd.delays` or `"My Herd"."Delays of 2013"`."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_BYTES = 63
"""Of a name; PostgreSQL cuts off what is more."""

_PLAIN = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r'"(?:[^"\0]|"")+"'
_NAME = re.compile(rf"(?:(?P<schema>{_PLAIN}|{_QUOTED})\.)?(?P<table>{_PLAIN}|{_QUOTED})\Z")
_FORM = (
    "must be a letter or _ and then letters, digits or _, at most 63 characters in all; any other name in"
    " double quotes; its schema and a dot may be before it"
)


class TableName(NamedTuple):
    """A table, and the schema that it is in; without one, where the database finds it."""

    schema: str | None
    table: str

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def read_table_name(text: str) -> TableName:
    """The name that `text` is; upper and lower case count, in quotes or not.

    Raises:
        ValueError: it is none.
    """
    match = _NAME.match(text)
    if match is None:
        raise ValueError(_FORM)
    schema = None if match["schema"] is None else _unquoted(match["schema"])
    name = TableName(schema, _unquoted(match["table"]))
    if any(len(part.encode(errors="replace")) > MAX_BYTES for part in name if part is not None):
        raise ValueError(_FORM)
    return name


def table_fault(text: str) -> str | None:
    """What is wrong with the name of a table that rows are to go to."""
    try:
        schema, table = read_table_name(text)
    except ValueError as error:
        return str(error)
    of_system = schema is not None and schema.lower().startswith(("pg_", "information_schema"))
    if of_system or table.lower().startswith(("sparkherd_", "sqlite_")):
        return "is a reserved name"
    return None


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
