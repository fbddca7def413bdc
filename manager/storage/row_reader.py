"""Reading groups back: a row that makes no sense is told from the others, and by its key.

Columns are read as the driver has them and made into values one row at a time, by what SQLAlchemy has for
it. Where SQLAlchemy itself does that, the first bad value ends the whole statement, of whichever group it is.

A server's rows come some at a time and are made in the event loop, which goes round before the next: one
group may have more of them than can be made within a lease.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from sqlalchemy import Boolean, Column, Enum, Table, func, literal, null, select, type_coerce, union_all
from sqlalchemy.types import NullType

from manager.core.stored_rows import GroupRow, Row, Unreadable
from manager.storage.schema import LOAD_ORDER, TABLES, Json
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Dialect, Select
    from sqlalchemy.types import TypeEngine

    Decode = Callable[[Any], Any] | None

MANY = 10_000
"""Names in one statement; databases take some 32,000 parameters."""
ROWS_AT_ONCE: Final = 1000
"""Rows that are made in one turn of the loop, which takes some 20 ms."""


def group_sizes(connection: Connection, groups: Collection[str] | None) -> dict[str, int]:
    """How many rows there are of each of `groups`, or of every group, in order; none has a group without any.

    A name that is no text nobody can ask for.
    """
    sizes: Counter[str] = Counter()
    for some in _names(groups):
        sizes.update({name: size for name, size in connection.execute(_sizes(some)) if isinstance(name, str)})
    return dict(sorted(sizes.items()))


def _sizes(groups: Sequence[str] | None) -> Select[Any]:
    keys = union_all(*(_of(select(table.c.group), table, groups) for table in TABLES.values())).subquery()
    return select(keys.c.group, func.count()).group_by(keys.c.group)


def _of(statement: Select[Any], table: Table, groups: Sequence[str] | None) -> Select[Any]:
    return statement if groups is None else statement.where(table.c.group.in_(groups))


def _names(groups: Collection[str] | None) -> Iterable[Sequence[str] | None]:
    if groups is None:
        return [None]
    names = tuple(groups)
    return [names[start : start + MANY] for start in range(0, len(names), MANY)]


def read_rows(
    connection: Connection, went_on: Callable[[], None], groups: Collection[str] | None
) -> dict[str, list[Row]]:
    """All rows of `groups`, or of every group; members by position, history by generation.

    What cannot be read is there as `Unreadable`. `went_on` is called whenever some have come.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for kind in TABLES:
        for some in _read_some(connection, kind, groups):
            went_on()
            for row in some:
                rows[row.group].append(row)
    return dict(rows)


def still_unreadable(
    connection: Connection, went_on: Callable[[], None], rows: Iterable[Unreadable]
) -> frozenset[str]:
    """The groups of those `rows` that are still there and as wrong as they were."""
    groups = set()
    for row in rows:
        if _read_one(connection, row) == row:
            groups.add(row.group)
        went_on()
    return frozenset(groups)


def _read_one(connection: Connection, row: Unreadable) -> Row | None:
    """None if it is gone, or its key is such that it cannot be asked for."""
    key = TABLES[row.kind].primary_key.columns
    wanted = _as_stored(row.kind).where(
        *(column == literal(value, NullType()) for column, value in zip(key, row.stored_key, strict=True))
    )
    found = connection.execute(wanted).mappings().first()
    return None if found is None else _made(row.kind, dict(found), _decoders(row.kind, connection.dialect))


def read_table(connection: Connection, kind: type[Row]) -> Iterator[Row]:
    """The rows of one table, each as a `kind` or as an `Unreadable`."""
    for some in _read_some(connection, kind, None):
        yield from some


def made_rows(
    connection: Connection,
    kind: type[Row],
    chosen: ColumnElement[bool],
    without: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of one table that are `chosen`, each as a `kind` or as an `Unreadable`.

    The columns `without` may be NULL, and are taken for it.
    """
    decoders = _decoders(kind, connection.dialect)
    found = connection.execute(_as_stored(kind, frozenset(without)).where(chosen))
    yield from (_made(kind, dict(each), decoders) for each in found.mappings())


def _read_some(
    connection: Connection, kind: type[Row], groups: Collection[str] | None
) -> Iterator[Iterator[Row]]:
    decoders = _decoders(kind, connection.dialect)
    for names in _names(groups):
        wanted = _of(_as_stored(kind), TABLES[kind], names)
        found = connection.execute(wanted, execution_options={"yield_per": ROWS_AT_ONCE})
        for stored in found.mappings().partitions():
            yield (_made(kind, dict(each), decoders) for each in stored)


@cache
def _as_stored(kind: type[Row], without: frozenset[str] = frozenset()) -> Select[Any]:
    """All columns, as the driver has them; NULL for those `without`."""
    table = TABLES[kind]
    raw = [
        (null() if column.name in without else type_coerce(column, NullType())).label(column.name)
        for column in table.columns
    ]
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
        if kind is GroupRow:
            values["rebalance_on_load"] = values.pop("state") is GroupState.PREPARING_REBALANCE
        return msgspec.convert(values, kind)
    except (msgspec.MsgspecError, ValueError) as error:
        return Unreadable(
            group=str(stored["group"]),
            place=_place(TABLES[kind], stored),
            why=str(error),
            kind=kind,
            stored_key=tuple(stored[column.name] for column in TABLES[kind].primary_key),
        )


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
