"""Whether a query's columns fit into a Delta table; rules without I/O."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.column_types import PARTS, as_text, is_comparable, kind_of, nested
from worker.sinks.errors import SchemaError
from worker.sinks.table import refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from worker.sinks.base import Field
    from worker.sinks.delta.marks import Seen

_UNWRITABLE: Final = ("void", "interval")
_UNNAMABLE: Final = frozenset(" ,;{}()\n\t=")
"""What Delta takes in no column's name, unless a table maps its columns."""
_UNORDERED: Final = ("map", "variant")
"""Types whose values have no order."""
_NO_FOLDER: Final = ("binary", *_UNORDERED)
"""Types whose values name no folder: of bytes, those only do that are text."""
_FILLED: Final = ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")
"""What the metadata of a column has that Delta fills by itself."""
_MOST_CLUSTERED: Final = 4
"""Columns that Delta clusters a table by."""
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
        yield from _unwritable(field)
        if not _UNNAMABLE.isdisjoint(field.name):
            yield f'Delta takes no column named "{field.name}": give it a name without spaces and ,;{{}}()='
    for setting, columns in named.items():
        for column in columns:
            if column.lower() not in names:
                yield f"{setting} names the column {column}, which the query does not yield"
        if twins := [name for name, times in Counter(_lowered(columns)).items() if times > 1]:
            yield f"{setting} names the column {twins[0]} twice"


def _unwritable(field: Field) -> Iterator[str]:
    for path, kind in nested(field.name, field.type):
        is_unwritable = isinstance(kind, str) and kind.startswith(_UNWRITABLE)
        if is_unwritable and not _is_void_in_struct(path, kind, field.name):
            yield f"Delta cannot hold {path} of type {kind}: {as_text(path, field.name)}"


def _is_void_in_struct(path: str, kind: str, column: str) -> bool:
    """Delta takes a field of type void in a struct, and reads NULL; below a list or a map it takes none."""
    inside = path.removeprefix(column)
    return kind == "void" and bool(inside) and not any(sign in inside for sign in PARTS.values())


def text_folders(fields: Sequence[Field], key: Sequence[str], seen: Seen) -> list[str]:
    """The columns of `key` that are texts, and that the table is laid apart by."""
    both = {*_lowered(key)} & {*_lowered(seen.partition_by)}
    return [field.name for field in fields if field.name.lower() in both and field.type == "string"]


def partition_columns(fields: Sequence[Field], partition_by: Sequence[str]) -> list[str]:
    """The columns that a new table is laid apart by, in the query's own letters: Delta tells them apart here.

    Raises:
        SchemaError: no column is left for the files, or one is of a type that no folder can be named by.
    """
    own = {field.name.lower(): field for field in fields}
    wanted = [own[name] for name in _lowered(partition_by)]
    if fields and len(wanted) == len(fields):
        raise SchemaError("sink.partition_by names every column: Delta needs one more, which its files hold")
    for field in wanted:
        kind = kind_of(field.type)
        if isinstance(field.type, dict) or kind in _NO_FOLDER:
            raise SchemaError(f"sink.partition_by names {field.name} of type {kind}, which names no folder")
    return [field.name for field in wanted]


def require_clusterable(fields: Sequence[Field], cluster_by: Sequence[str]) -> None:
    """To be asked before a table has columns: one that has them is never clustered by the sink.

    Raises:
        SchemaError: Delta would not cluster a table by these.
    """
    if len(cluster_by) > _MOST_CLUSTERED:
        said = f"names {len(cluster_by)} columns, and Delta clusters a table by {_MOST_CLUSTERED} at most"
        raise SchemaError(f"sink.options.cluster_by {said}")
    named = set(_lowered(cluster_by))
    for field in fields:
        kind = kind_of(field.type)
        if field.name.lower() in named and (isinstance(field.type, dict) or kind in _UNORDERED):
            raise SchemaError(
                f"sink.options.cluster_by names {field.name} of type {kind}, which has no order"
            )


def merge_faults(fields: Sequence[Field], key: Sequence[str]) -> Iterator[str]:
    """What cannot be upserted by `key`; without one, nothing is."""
    named = {column.lower() for column in key}
    for field in fields if key else ():
        kind = kind_of(field.type)
        if "`" in field.name:
            yield f"Delta's MERGE takes no column named {field.name}: give it a name without backticks"
        if field.name.lower() in named and not is_comparable(field.type):
            yield f"sink.options.key names {field.name} of type {kind}, which cannot be compared"


def table_faults(
    fields: Sequence[Field], seen: Seen, partition_by: Sequence[str], *, may_add: bool, appends: bool = True
) -> Iterator[str]:
    """Why rows of these columns do not fit into the table that is there.

    Args:
        fields: the query's columns.
        seen: the table.
        partition_by: as the definition has it.
        may_add: whether columns are added that the table has not.
        appends: whether rows are put there as they are; a MERGE has to be given all columns.
    """
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
    for name in (column["name"] for column in seen.columns if not (appends and _is_filled(column))):
        if name.lower() not in ours:
            said = f"the table {seen.path} has a column {name}, which the query does not yield"
            yield f"{said}: select a value for it, or CAST(NULL AS its type)"
    if partition_by and _lowered(partition_by) != _lowered(seen.partition_by):
        by = ", ".join(seen.partition_by) or "no column"
        yield f"sink.partition_by: the table {seen.path} is laid apart by {by}, which cannot be changed"


def _is_filled(column: Mapping[str, Any]) -> bool:
    return not column.get("metadata", {}).keys().isdisjoint(_FILLED)


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
