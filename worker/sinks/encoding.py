"""Rows as Spark hands them over, made into what a database's driver takes; on the driver and on executors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError
from worker.sinks.types import column_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Dialect

    from worker.sinks.parts import Rows


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
        if not any(converters):
            return rows
        try:
            return [
                tuple(
                    convert(value) if convert else value
                    for convert, value in zip(converters, row, strict=True)
                )
                for row in rows
            ]
        except SchemaError as error:
            raise SchemaError(f"{error}: {self._culprit(rows)}") from None

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

    def _culprit(self, rows: Rows) -> str:
        """The column of the first value that cannot be converted."""
        for name, convert, values in zip(
            self.names, _converters(self.driver, self.kinds), zip(*rows, strict=True), strict=True
        ):
            if convert and not all(_converts(convert, values)):
                return f"column {name}"
        return "an unknown column"


def _converts(convert: Callable[[Any], Any], values: tuple[Any, ...]) -> Iterator[bool]:
    for value in values:
        try:
            convert(value)
        except SchemaError:
            yield False
        else:
            yield True


@cache
def _converters(driver: str, kinds: tuple[str, ...]) -> tuple[Callable[[Any], Any] | None, ...]:
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
