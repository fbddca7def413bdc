"""A query's columns against a table's: what has to be added, widened or left empty, and what cannot be.

No I/O. Types are those of Spark's schemas in JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from worker.sinks.column_types import PARTS, as_text, is_comparable, kind_of, nested
from worker.sinks.errors import SchemaError
from worker.sinks.table import refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from worker.sinks.base import Field

_UNWRITABLE: Final = re.compile(r"void|interval.*|.*interval|time\(\d+\)|geography.*|geometry.*")
_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "byte": frozenset({"short", "integer", "long"}),
    "short": frozenset({"integer", "long"}),
    "integer": frozenset({"long"}),
    "float": frozenset({"double"}),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_SAME: Final = {"byte": "integer", "short": "integer"}
"""Iceberg has no numbers as small as that."""


class Column(NamedTuple):
    """One of a table's; `type` in the JSON form of Spark's schemas."""

    name: str
    type: str | dict[str, Any]
    is_required: bool = False


class Fit(NamedTuple):
    """What goes before rows of a query into a table: columns to add to it, to widen in it, to leave empty."""

    add: tuple[Field, ...] = ()
    widen: tuple[Field, ...] = ()
    empty: tuple[Column, ...] = ()


def fit(fields: Sequence[Field], columns: Sequence[Column], *, merge_schema: bool) -> Fit:
    """How rows of these fields get into a table of these columns.

    Args:
        fields: the query's.
        columns: the table's; none of a table that was just made.
        merge_schema: the table may be changed for them.

    Raises:
        SchemaError: they do not; all columns in the way are named.
    """
    require_writable(fields)
    theirs = {column.name.lower(): column for column in columns}
    ours = {field.name.lower() for field in fields}
    new = tuple(field for field in fields if field.name.lower() not in theirs)
    wider = tuple(field for field in fields if _widens(field, theirs.get(field.name.lower())))
    faults = list(_misfits(fields, theirs, wider))
    faults += [
        f"{column.name} of the table must have a value, and the query has none"
        for column in columns
        if column.is_required and column.name.lower() not in ours
    ]
    if columns and not merge_schema:
        faults += [f"{field.name} is not in the table" for field in new]
        faults += [f"{field.name} is wider than the table's: {kind_of(field.type)}" for field in wider]
    if faults:
        remedy = "" if merge_schema or not (new or wider) else _REMEDY
        raise SchemaError(f"the query's columns do not fit the table: {'; '.join(faults)}{remedy}")
    return Fit(new, wider, tuple(each for each in columns if each.name.lower() not in ours))


_REMEDY: Final = "; sink.options.merge_schema: true has columns added and widened"


def require_writable(fields: Sequence[Field]) -> None:
    """Refuse columns that no table of Iceberg's can hold.

    Raises:
        SchemaError: naming the first of them.
    """
    refuse_twins([field.name for field in fields])
    for field in fields:
        for path, kind in nested(field.name, field.type):
            if isinstance(kind, str) and _UNWRITABLE.fullmatch(kind):
                raise SchemaError(f"Iceberg cannot hold {path} of type {kind}: {as_text(path, field.name)}")
            if kind_of(kind) == "struct":
                _refuse_nested_twins(path, [each["name"] for each in kind["fields"]])


def _refuse_nested_twins(path: str, names: Sequence[str]) -> None:
    """Iceberg takes two that differ in case, and nobody can read the table from then on."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            twins = f"{seen[name.lower()]} and {name}"
            raise SchemaError(f"{path} has two fields of one name, {twins}: give each its own")
        seen[name.lower()] = name


def require_key(key: Sequence[str], fields: Sequence[Field]) -> None:
    """An upsert goes by columns of the query.

    Raises:
        SchemaError: one of them is not there, or its values cannot be compared.
    """
    ours = {field.name.lower(): field for field in fields}
    for column in key:
        field = ours.get(column.lower())
        if field is None:
            known = ", ".join(field.name for field in fields)
            raise SchemaError(f"sink.options.key names {column}, but the query's columns are {known}")
        if not is_comparable(field.type):
            kind = kind_of(field.type)
            raise SchemaError(f"sink.options.key names {column} of type {kind}, which cannot be compared")


def _misfits(fields: Sequence[Field], theirs: Mapping[str, Column], wider: Sequence[Field]) -> Iterator[str]:
    for field in fields:
        column = theirs.get(field.name.lower())
        if column is None or field in wider or _goes_into(field.type, column.type):
            continue
        yield from _differences(field.name, _plain(field.type), _plain(column.type))


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    """Where two plain types that are not the same differ, down to the nested fields that do."""
    kind = kind_of(ours)
    if kind == kind_of(theirs) == "struct":
        yield from _struct_differences(path, ours["fields"], theirs["fields"])
    elif kind != kind_of(theirs) or kind not in {"array", "map"}:
        yield f"{path} is {kind}, and {kind_of(theirs)} in the table"
    else:
        for part, place in PARTS.items():
            if ours.get(part) != theirs.get(part):
                yield from _differences(f"{path}{place}", ours[part], theirs[part])


def _struct_differences(path: str, ours: list[Any], theirs: list[Any]) -> Iterator[str]:
    mine, known = ({each["name"]: each["type"] for each in fields} for fields in (ours, theirs))
    yield from (f"{path}.{name} is not in the table" for name in mine if name not in known)
    yield from (f"{path}.{name} of the table is not in the query" for name in known if name not in mine)
    for name in mine:
        if name in known and mine[name] != known[name]:
            yield from _differences(f"{path}.{name}", mine[name], known[name])
    if list(mine) != list(known) and mine.keys() == known.keys():
        yield f"{path} has its fields as {', '.join(mine)}, and as {', '.join(known)} in the table"


def _widens(field: Field, column: Column | None) -> bool:
    """Whether the table's column would have to become as wide as the field, and can."""
    if column is None or _goes_into(field.type, column.type):
        return False
    return (
        isinstance(field.type, str) and isinstance(column.type, str) and _is_narrower(column.type, field.type)
    )


def _goes_into(ours: str | dict[str, Any], theirs: str | dict[str, Any]) -> bool:
    """Whether no value is changed on its way."""
    ours, theirs = _plain(ours), _plain(theirs)
    if ours == theirs:
        return True
    return isinstance(ours, str) and isinstance(theirs, str) and _is_narrower(ours, theirs)


def _is_narrower(one: str, other: str) -> bool:
    if other in _WIDER.get(one, ()):
        return True
    narrow, wide = _DECIMAL.fullmatch(one), _DECIMAL.fullmatch(other)
    return bool(narrow and wide and narrow[2] == wide[2] and int(narrow[1]) <= int(wide[1]))


def _plain(kind: Any) -> Any:
    """A type without what changes no value: whether one may be missing, comments, the sizes of texts."""
    if isinstance(kind, dict):
        left = {key: _plain(value) for key, value in kind.items()}
        return {key: value for key, value in left.items() if key not in {"nullable", "metadata", *_NULLABLE}}
    if isinstance(kind, list):
        return [_plain(each) for each in kind]
    if isinstance(kind, str) and kind.startswith(("varchar(", "char(")):
        return "string"
    return _SAME.get(kind, kind) if isinstance(kind, str) else kind


_NULLABLE: Final = ("containsNull", "valueContainsNull")
