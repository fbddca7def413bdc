"""The database's own clock: the one clock that all managers can read, whatever theirs say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler


class database_now_ms(GenericFunction[int]):  # noqa: N801 - functions of SQL are named like this
    """The moment the statement runs at, in milliseconds since 1970."""

    type = BigInteger()
    inherit_cache = True


@compiles(database_now_ms, "postgresql")
def _postgresql(_element: database_now_ms, _compiler: SQLCompiler, **_: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"


@compiles(database_now_ms, "sqlite")
def _sqlite(_element: database_now_ms, _compiler: SQLCompiler, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
