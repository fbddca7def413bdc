"""Making a database that was put back from a copy safe to go on with: no number is given out twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from manager.core.rows import GroupRow, OwnershipRow
from manager.storage.leases import HAS_EXPIRED
from manager.storage.migrate import schema_of, take_turns
from manager.storage.schema import MANAGERS, TABLES
from protocol.errors import StartupError

if TYPE_CHECKING:
    from sqlalchemy import Connection

FURTHER = 1_000_000
"""More than a herd gets through between two copies; tokens and generations need not be consecutive."""


def raise_numbers(connection: Connection) -> int:
    """Raise every token and generation by `FURTHER`, inside the caller's transaction.

    Sinks and workers may have seen later ones than the copy has. Members of the copy find their generation
    unknown and join again.

    Returns:
        How many tasks there are.

    Raises:
        StartupError: the schema is not this version's, or a manager is at work.
    """
    take_turns(connection)
    if not schema_of(connection).is_current:
        raise StartupError("--database: its schema is not this sparkherd's; `sparkherd db upgrade` first")
    living = select(MANAGERS.c.url).where(MANAGERS.c.expires_at_ms.is_not(None), ~HAS_EXPIRED)
    if (url := connection.scalar(living)) is not None:
        raise StartupError(f"--database: a manager at {url} uses it; stop all managers first")
    groups, ownership = TABLES[GroupRow], TABLES[OwnershipRow]
    connection.execute(update(groups).values(generation=groups.c.generation + FURTHER))
    return connection.execute(update(ownership).values(token=ownership.c.token + FURTHER)).rowcount
