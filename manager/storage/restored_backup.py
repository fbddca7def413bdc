"""Making a database that was put back from a copy safe to go on with: nobody goes on under an old number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import case, delete, update

from manager.core.stored_rows import GroupRow, OwnershipRow, TransferRow
from manager.storage.herd_table import FIGURES
from manager.storage.living_managers import url_of_a_living_one
from manager.storage.migrate import schema_of, take_turns
from manager.storage.schema import TABLES
from protocol.errors import StartupError
from protocol.fencing import next_number
from protocol.states import TransferStep

if TYPE_CHECKING:
    from sqlalchemy import Connection

FURTHER = 1_000_000
"""More than a group gets through between two copies; generations need not be consecutive."""


def raise_numbers(connection: Connection, now_ms: int, above: int = 0) -> int:
    """Raise every token as if it were granted now, and every generation by `FURTHER`, in the transaction.

    Whatever is granted after this is higher than what sinks have seen, whoever granted that. What is owned in
    the copy was granted before: without this its owner would go on under that old token. Members of the copy
    find their generation unknown and join again. Nobody knows who has run a task since, and may write for it
    yet, so every one is to be settled (`manager.core.tasks.settling`), also one that is STOPPED in the copy.
    What is packed for another group (`manager.core.tasks.transfers`) is packed again, with all this.
    Nobody misses the managers of the copy.

    Args:
        connection: of the caller's transaction.
        now_ms: the wall clock, in milliseconds since 1970.
        above: tokens are to be higher than this, whatever the clock says.

    Returns:
        How many tasks there are.

    Raises:
        StartupError: the schema is not this version's, or a manager is at work.
    """
    take_turns(connection)
    if not schema_of(connection).is_current:
        raise StartupError("--database: its schema is not this sparkherd's; `sparkherd db upgrade` first")
    if (url := url_of_a_living_one(connection)) is not None:
        raise StartupError(f"--database: a manager at {url} uses it; stop all managers first")
    groups, ownership, transfers = TABLES[GroupRow], TABLES[OwnershipRow], TABLES[TransferRow]
    packed = transfers.c.leaves & (transfers.c.step == TransferStep.STOPPED)
    connection.execute(update(transfers).where(packed).values(step=TransferStep.STOPPING, parcel=None))
    connection.execute(delete(FIGURES))
    connection.execute(update(groups).values(generation=groups.c.generation + FURTHER))
    least, following = next_number(above, now_ms), ownership.c.token + 1
    higher = case((following > least, following), else_=least)
    return connection.execute(update(ownership).values(token=higher, unsettled=True)).rowcount
