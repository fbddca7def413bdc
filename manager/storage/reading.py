"""Reading groups back: a row that makes no sense is told from the others, and by its key.

Columns are read as the driver has them and made into values one row at a time, by what SQLAlchemy has for
it. Where SQLAlchemy itself does that, the first bad value ends the whole statement, of whichever group it is.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec
from sqlalchemy import Boolean, Column, Enum, Table, select, type_coerce, union
from sqlalchemy.types import NullType

from manager.core.rows import Row, Unreadable
from manager.portions import portions
from manager.storage.schema import LOAD_ORDER, TABLES, Json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from sqlalchemy import Connection, Dialect, Select
    from sqlalchemy.types import TypeEngine

    Decode = Callable[[Any], Any] | None

MANY = 10_000
"""Names in one statement; databases take some 32,000 parameters."""
NAMES = union(*(select(table.c.group) for table in TABLES.values()))


def group_names(connection: Connection) -> list[str]:
    """Every group that anything is stored of, in order; a name that is no text nobody can ask for."""
    return sorted(name for name in connection.execute(NAMES).scalars() if isinstance(name, str))


def read_rows(connection: Connection, groups: Collection[str] | None) -> dict[str, list[Row]]:
    """All rows of `groups`, or of every group; members by position, history by generation.

    What cannot be read is there as `Unreadable`.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for kind in TABLES:
        for row in read_table(connection, kind, groups):
            rows[row.group].append(row)
    return dict(rows)


def read_table(
    connection: Connection, kind: type[Row], groups: Collection[str] | None = None
) -> Iterator[Row]:
    """The rows of one table, each as a `kind` or as an `Unreadable`; of `groups`, or of every group."""
    statement, decoders = _as_stored(kind), _decoders(kind, connection.dialect)
    for some in [None] if groups is None else portions(tuple(groups), MANY):
        wanted = statement if some is None else statement.where(TABLES[kind].c.group.in_(some))
        for stored in connection.execute(wanted).mappings():
            yield _made(kind, dict(stored), decoders)


@cache
def _as_stored(kind: type[Row]) -> Select[Any]:
    """All columns, as the driver has them."""
    table = TABLES[kind]
    raw = [type_coerce(column, NullType()).label(column.name) for column in table.columns]
    statement = cast("Select[Any]", select(*raw))
    return statement.order_by(table.c[LOAD_ORDER[kind]]) if kind in LOAD_ORDER else statement


@cache
def _decoders(kind: type[Row], dialect: Dialect) -> list[tuple[Column[Any], Decode]]:
    """All columns, each with what makes its values, if the driver does not."""
    return [(column, _decoder(column.type, dialect)) for column in TABLES[kind].columns]


def _decoder(kind: TypeEngine[Any], dialect: Dialect) -> Decode:
    is_made_here = isinstance(kind, Json | Enum | Boolean)
    return kind.dialect_impl(dialect).result_processor(dialect, None) if is_made_here else None


def _made(kind: type[Row], stored: dict[str, Any], decoders: Sequence[tuple[Column[Any], Decode]]) -> Row:
    try:
        values = {str(c.name): _value(stored[c.name], c, decode) for c, decode in decoders}
        return msgspec.convert(values, kind)
    except (msgspec.MsgspecError, ValueError) as error:
        return Unreadable(group=str(stored["group"]), place=_place(TABLES[kind], stored), why=str(error))


def _value(stored: Any, column: Column[Any], decode: Decode) -> Any:
    if stored is None and not column.nullable:
        raise ValueError(f"{column.name} is NULL")
    try:
        return stored if decode is None else decode(stored)
    except Exception as error:
        raise ValueError(f"{column.name}: {error}") from error


def _place(table: Table, stored: dict[str, Any]) -> str:
    """As in `table tasks, group flights, task delays`."""
    key = ", ".join(f"{column.name} {stored[column.name]}" for column in table.primary_key)
    return f"table {table.name}, {key}"
