"""Every type of Spark SQL as a type of the database, or a refusal that names the column.

Round trips are exact for all of them on PostgreSQL. SQLite knows fewer types: decimals are kept there as
text, times as ISO text (an instant in UTC), and NaN, which it does not have, becomes NULL.

Dates and instants come as Spark counts them, in days and microseconds since 1970: that is the same on every
machine, whatever its zone, and an executor that is to make a `datetime` of it fails at the first year
which Python does not know.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

from worker.sinks.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Dialect

    from worker.sinks.base import Field


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.date().toordinal()


class Instant(TypeDecorator[datetime]):
    """A point in time, in microseconds since 1970; read back as a datetime in UTC."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> datetime | None:
        """In UTC; without the zone where the database would drop it in silence."""
        if value is None:
            return None
        try:
            instant = EPOCH + timedelta(microseconds=value)
        except OverflowError:
            raise _beyond_python("timestamp") from None
        return instant.replace(tzinfo=None) if dialect.name == "sqlite" else instant

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """In UTC, and saying so."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class Day(TypeDecorator[date]):
    """A date, in days since 1970; read back as a date."""

    impl = sa.Date
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> date | None:
        """As a date."""
        del dialect
        try:
            return None if value is None else date.fromordinal(_EPOCH_DAY + value)
        except (OverflowError, ValueError):
            raise _beyond_python("date") from None


def _beyond_python(kind: str) -> SchemaError:
    return SchemaError(f"a {kind} lies outside the years 1 to 9999, which is all that the sql sink can write")


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal with all its digits; text on SQLite, whose own numbers would round them."""

    impl = sa.Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """NUMERIC with its precision, or text."""
        kind = sa.Text() if dialect.name == "sqlite" else self.impl_instance
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        """Without an exponent, so that SQLite's own casts understand it."""
        return format(value, "f") if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """A Decimal again."""
        del dialect
        return None if value is None else Decimal(value)


_PLAIN: dict[str, Callable[[], TypeEngine[Any]]] = {
    "boolean": sa.Boolean,
    "byte": sa.SmallInteger,
    "short": sa.SmallInteger,
    "integer": sa.Integer,
    "long": sa.BigInteger,
    "float": sa.REAL,
    "double": sa.Double,
    "string": sa.Text,
    "binary": sa.LargeBinary,
    "date": Day,
    "timestamp": Instant,
    "timestamp_ntz": sa.DateTime,
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_TEXT = re.compile(r"(?:char|varchar)\(\d+\)|string collate \w+")
_TIME = re.compile(r"time\(\d+\)")
_REMEDIES = {
    "array": "to_json({0})",
    "map": "to_json({0})",
    "struct": "to_json({0})",
    "variant": "to_json({0})",
    "geometry": "st_asbinary({0})",
    "geography": "st_asbinary({0})",
}


def column_type(kind: str | dict[str, Any]) -> TypeEngine[Any] | None:
    """The database's type for Spark's `kind`, None if there is none."""
    if not isinstance(kind, str):
        return None
    if plain := _PLAIN.get(kind):
        return plain()
    if match := _DECIMAL.fullmatch(kind):
        return ExactDecimal(precision=int(match[1]), scale=int(match[2]))
    if _TIME.fullmatch(kind):
        return sa.Time()
    return sa.Text() if _TEXT.fullmatch(kind) else None


def column_types(fields: Sequence[Field]) -> list[TypeEngine[Any]]:
    """The types of all columns.

    Raises:
        SchemaError: naming every column that no database column can hold, and what to write instead.
    """
    types = [column_type(field.type) for field in fields]
    if None in types:
        faults = "; ".join(_faults(fields, types))
        raise SchemaError(f"the sql sink has no column type for {faults}")
    return [kind for kind in types if kind is not None]


def _faults(fields: Sequence[Field], types: Sequence[TypeEngine[Any] | None]) -> Iterator[str]:
    for field, kind in zip(fields, types, strict=True):
        if kind is None:
            name = field.type if isinstance(field.type, str) else str(field.type.get("type"))
            remedy = _REMEDIES.get(name.partition("(")[0], "CAST({0} AS STRING)").format(field.name)
            yield f"{field.name} of type {name}, select {remedy} AS {field.name} instead"
