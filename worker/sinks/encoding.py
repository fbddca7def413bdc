"""Rows as Spark hands them over, made into what a database's driver takes; on the driver and on executors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError
from worker.sinks.types import column_types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Dialect

    from worker.sinks.parts import Rows

    Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Encoder:
    """How the rows of one query look, and what they must be for one kind of database.

    `driver` is SQLAlchemy's name of it, `keys` the positions of the columns that identify a row of an upsert.
    Made of plain values, so that it can travel to executors.
    """

    driver: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    keys: tuple[int, ...] = ()

    def chunk(self, rows: Rows) -> Rows:
        """The rows, encoded.

        Raises:
            SchemaError: a value that the database cannot hold; the text names the column.
        """
        self._refuse_null_keys(rows)
        converters = _converters(self.driver, self.kinds)
        if not rows or not any(converters):
            return rows
        columns = map(_converted, self.names, converters, zip(*rows, strict=True))
        return list(zip(*columns, strict=True))

    def nul_column(self, rows: Rows) -> str | None:
        """The first column in which a text holds the character NUL, which PostgreSQL's cannot."""
        for at, name in enumerate(self.names):
            is_text = self.kinds[at].startswith(("string", "char", "varchar"))
            if is_text and any(row[at] is not None and "\0" in row[at] for row in rows):
                return name
        return None

    def _refuse_null_keys(self, rows: Rows) -> None:
        """No NULL equals another: such rows would pile up instead of taking each other's place."""
        for index in self.keys:
            if any(row[index] is None for row in rows):
                raise SchemaError(
                    f"the key column {self.names[index]} is NULL in a row, and an upsert cannot find"
                    " such a row"
                )
            if self._has_nan_for_null(index) and any(isnan(row[index]) for row in rows):
                raise SchemaError(
                    f"the key column {self.names[index]} is NaN in a row, which SQLite keeps as NULL, and an"
                    " upsert cannot find such a row"
                )

    def _has_nan_for_null(self, index: int) -> bool:
        return self.driver.startswith("sqlite") and self.kinds[index] in {"float", "double"}


def _converted(name: str, convert: Convert | None, values: tuple[Any, ...]) -> Sequence[Any]:
    """One column; taking all of it at a time saves most of what it costs to look at each value."""
    if convert is None:
        return values
    try:
        return [convert(value) for value in values]
    except SchemaError as error:
        raise SchemaError(f"{error}: column {name}") from None


@cache
def _converters(driver: str, kinds: tuple[str, ...]) -> tuple[Convert | None, ...]:
    """What turns each column's values into what the driver takes; None where they already are."""
    dialect = dialect_of(driver)
    types = column_types([Field(f"column {at}", kind) for at, kind in enumerate(kinds)])
    return tuple(kind.dialect_impl(dialect).bind_processor(dialect) for kind in types)


@cache
def dialect_of(driver: str) -> Dialect:
    """SQLAlchemy's dialect for a driver, without a connection."""
    kind: Any = sa.make_url(f"{driver}://").get_dialect()
    dialect: Dialect = kind(dbapi=kind.import_dbapi())
    return dialect
