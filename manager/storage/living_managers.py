"""Which managers live, by the database's clock: the one that all of them can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, and_, inspect, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from manager.storage.schema import MANAGERS

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.sql.compiler import SQLCompiler


class database_now_ms(GenericFunction[int]):  # noqa: N801 - functions of SQL are named like this
    """The moment the statement runs at by the database's clock, the one that all managers can read; in ms."""

    type = BigInteger()
    inherit_cache = True


@compiles(database_now_ms, "postgresql")
def _postgresql(_element: database_now_ms, _compiler: SQLCompiler, **_: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"


@compiles(database_now_ms, "sqlite")
def _sqlite(_element: database_now_ms, _compiler: SQLCompiler, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


HAS_EXPIRED = and_(MANAGERS.c.expires_at_ms.is_not(None), MANAGERS.c.expires_at_ms <= database_now_ms())
LIVING = select(MANAGERS.c.incarnation).where(~HAS_EXPIRED)


def url_of_a_living_one(connection: Connection) -> str | None:
    """Where a manager serves whose lease has not run out; None without any, or in a database without leases.

    The only manager of an SQLite file has no lease: there is a lock beside the file.
    """
    if not inspect(connection).has_table(MANAGERS.name):
        return None
    with_lease = select(MANAGERS.c.url).where(MANAGERS.c.expires_at_ms.is_not(None), ~HAS_EXPIRED)
    return connection.scalar(with_lease)
