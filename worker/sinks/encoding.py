"""Rows as Spark hands them over, made into what a database's driver takes; on the driver and on executors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from worker.sinks.aside import Aside
from worker.sinks.base import Field
from worker.sinks.errors import SchemaError
from worker.sinks.row_json import as_json
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
    `most_aside` is how many rows of a batch may be put aside because the database does not take them; None if
    one of them fails the batch.
    Made of plain values, so that it can travel to executors.
    """

    driver: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    keys: tuple[int, ...] = ()
    most_aside: int | None = None

    def sorted_out(self, rows: Rows) -> tuple[Rows, list[Aside]]:
        """The rows, encoded, and those that are put aside.

        Raises:
            SchemaError: as `chunk` does, if no rows are put aside.
        """
        try:
            return self.chunk(rows), []
        except SchemaError:
            if self.most_aside is None:
                raise
        good: Rows = []
        aside: list[Aside] = []
        for row in rows:
            try:
                good += self.chunk([row])
            except SchemaError as error:
                aside.append(self.refused(row, str(error)))
        return good, aside

    def refused(self, row: tuple[Any, ...], why: str, public: str | None = None) -> Aside:
        """A row that is put aside because the database does not take it; anybody may read `public`."""
        raw = as_json(self.names, self.kinds, row)
        return Aside("refused", ("sink",), why, "row", raw, public_error=public)

    def chunk(self, rows: Rows) -> Rows:
        """The rows, encoded.

        Raises:
            SchemaError: a value that the database cannot hold; the text names the column.
        """
        self._refuse_null_keys(rows)
        self._refuse_texts(rows)
        converters = _converters(self.driver, self.kinds)
        if not rows or not any(converters):
            return rows
        columns = map(_converted, self.names, converters, zip(*rows, strict=True))
        return list(zip(*columns, strict=True))

    def _refuse_texts(self, rows: Rows) -> None:
        """No text of a database's can hold half of a character, and PostgreSQL's not the character NUL."""
        for at, name in enumerate(self.names):
            if not self.kinds[at].startswith(("string", "char", "varchar")):
                continue
            text = "".join(row[at] for row in rows if row[at] is not None)
            if not _is_utf8(text):
                raise SchemaError(
                    f"column {name} holds half of a character (a surrogate of UTF-16 without the other),"
                    " which no text of a database can"
                )
            if "\0" in text and self.driver.startswith("postgresql"):
                remedy = f"select replace({name}, char(0), '') AS {name} instead"
                raise SchemaError(
                    f"column {name} holds the character NUL, which PostgreSQL's text cannot: {remedy}"
                )

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


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
