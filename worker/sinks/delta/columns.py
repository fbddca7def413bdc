"""Whether a query's columns fit into a Delta table; rules without I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.table import refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from worker.sinks.base import Field
    from worker.sinks.delta.marks import Seen

_UNWRITABLE: Final = ("void", "interval")
_UNNAMABLE: Final = frozenset(" ,;{}()\n\t=")
"""What Delta takes in no column's name, unless a table maps its columns."""
_INCIDENTAL: Final = {"nullable", "metadata", "containsNull", "valueContainsNull"}


def field_faults(fields: Sequence[Field], named: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What no table could take.

    Args:
        fields: the query's columns.
        named: columns that settings name, by the setting.

    Raises:
        SchemaError: two columns have one name.
    """
    refuse_twins([field.name for field in fields])
    names = {field.name.lower() for field in fields}
    for field in fields:
        if isinstance(field.type, str) and field.type.startswith(_UNWRITABLE):
            remedy = f"select CAST({field.name} AS STRING) AS {field.name} instead"
            yield f"Delta cannot hold {field.name} of type {field.type}: {remedy}"
        if not _UNNAMABLE.isdisjoint(field.name):
            yield f'Delta takes no column named "{field.name}": give it a name without spaces and ,;{{}}()='
    for setting, columns in named.items():
        for column in columns:
            if column.lower() not in names:
                yield f"{setting} names the column {column}, which the query does not yield"


def table_faults(
    fields: Sequence[Field], seen: Seen, partition_by: Sequence[str], *, may_add: bool
) -> Iterator[str]:
    """Why rows of these columns do not fit into the table that is there."""
    theirs = {column["name"].lower(): column for column in seen.columns}
    ours = {field.name.lower() for field in fields}
    for field in fields:
        there = theirs.get(field.name.lower())
        if there is None and not may_add:
            yield (
                f"the table {seen.path} has no column {field.name}: leave it out, add it to the table, or"
                " allow it with sink.options.merge_schema: true"
            )
        elif there is not None and _plain(there["type"]) != _plain(field.type):
            said = f"the column {field.name} is of type {_shown(there['type'])} in the table {seen.path}"
            yield f"{said}, and the query yields {_shown(field.type)}: cast it"
    for name in (column["name"] for column in seen.columns):
        if name.lower() not in ours:
            said = f"the table {seen.path} has a column {name}, which the query does not yield"
            yield f"{said}: select a value for it, or CAST(NULL AS its type)"
    if partition_by and _lowered(partition_by) != _lowered(seen.partition_by):
        by = ", ".join(seen.partition_by) or "no column"
        yield f"sink.partition_by: the table {seen.path} is laid apart by {by}, which cannot be changed"


def missing(fields: Sequence[Field], seen: Seen) -> list[Field]:
    """The columns that the table has not."""
    theirs = {column["name"].lower() for column in seen.columns}
    return [field for field in fields if field.name.lower() not in theirs]


def _lowered(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _plain(kind: Any) -> Any:
    """A type without what a table may have otherwise: whether there may be NULL, and comments."""
    if isinstance(kind, dict):
        return {key: _plain(value) for key, value in kind.items() if key not in _INCIDENTAL}
    return [_plain(each) for each in kind] if isinstance(kind, list) else kind


def _shown(kind: Any) -> str:
    return kind if isinstance(kind, str) else json.dumps(_plain(kind))
