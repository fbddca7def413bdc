"""Types of columns in the JSON form of Spark's schemas: what is nested in them, and how SQL writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SQL_NAMES: Final[Mapping[str, str]] = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}
"""Types that SQL calls otherwise."""
PARTS: Final = {"elementType": "[]", "keyType": "{key}", "valueType": "{value}"}
"""The types in a list or a map, and how their place is shown."""

_INCOMPARABLE: Final = ("map", "variant")


def kind_of(kind: Any) -> str:
    """The name of a type, whatever is in it."""
    return kind if isinstance(kind, str) else str(kind.get("type"))


def is_comparable(kind: Any) -> bool:
    """Whether somebody can say of two values of a type that they are the same."""
    return not any(kind_of(each) in _INCOMPARABLE for _, each in nested("", kind))


def as_text(path: str, column: str) -> str:
    """What to do about a value of a type that cannot be held, in `column` or as a whole."""
    return f"select CAST({path} AS STRING) AS {path} instead" if path == column else "cast it"


def nested(path: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """A type and all that are in it, each with its place: `a`, `a.b`, `a.b[]`."""
    yield path, kind
    if isinstance(kind, str):
        return
    for each in kind.get("fields", ()):
        yield from nested(f"{path}.{each['name']}", each["type"])
    for part, place in {**PARTS, "sqlType": ""}.items():
        if part in kind:
            yield from nested(f"{path}{place}", kind[part])


def type_sql(kind: Any, names: Mapping[str, str] = SQL_NAMES) -> str:
    """A type as SQL has it.

    Args:
        kind: the type.
        names: what some types are called there.
    """
    if isinstance(kind, str):
        return names.get(kind, kind)
    match kind["type"]:
        case "struct":
            fields = (f"{quoted(each['name'])}: {type_sql(each['type'], names)}" for each in kind["fields"])
            return f"struct<{', '.join(fields)}>"
        case "array":
            return f"array<{type_sql(kind['elementType'], names)}>"
        case "map":
            return f"map<{type_sql(kind['keyType'], names)}, {type_sql(kind['valueType'], names)}>"
        case _:
            return type_sql(kind["sqlType"], names)


def quoted(name: str) -> str:
    """A name as Spark's SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
