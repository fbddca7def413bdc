"""The audit log in the database: entries in the order in which they were stored, for a bounded time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from sqlalchemy import BigInteger, Column, Index, Table, Text, delete, insert, or_, select, update

from manager.storage.inserts import insert_rows
from manager.storage.schema import METADATA, Json
from protocol.messages.audit import AuditEntry, AuditListQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from manager.storage.database import Database

PRUNED_AT_ONCE: Final = 1000
"""Entries that one transaction deletes at most: writers wait for it."""

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("group", Text),
    Column("entry", Json(AuditEntry), nullable=False),
    Index("audit_of_group", "group", "id"),
    Index("audit_of_who", "who", "id"),
)

NUMBERS = Table(
    "audit_numbers",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("last_id", BigInteger, nullable=False),
)
"""One row. Whoever stores entries holds it: ids are in the order of commits, and a reader misses none."""

_INSERT = insert(AUDIT)


class AuditTable:
    """What a manager needs of it; every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entries: Sequence[AuditEntry]) -> None:
        """Store them, all or none; they are numbered here."""
        await self._database.transact(partial(add_entries, entries=entries))

    async def read(self, asked: AuditListQuery) -> tuple[AuditEntry, ...]:
        """Those that are asked for, and one more if there are more."""
        return await self._database.transact(partial(_read, asked=asked))

    async def prune(self, before_ms: int, keep: int) -> bool:
        """Forget entries from before, and all but `keep`; whether there may be more to forget."""
        return await self._database.transact(partial(_prune, before_ms=before_ms, keep=keep))

    async def close(self) -> None:
        """Let go of the database."""
        await self._database.close()


def add_entries(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    """Number and keep them; the row of numbers comes first, so that nobody has to wait in the middle."""
    forward = update(NUMBERS).values(last_id=NUMBERS.c.last_id + len(entries)).returning(NUMBERS.c.last_id)
    first = connection.execute(forward).scalar_one() - len(entries) + 1
    numbered = [msgspec.structs.replace(each, id=first + place) for place, each in enumerate(entries)]
    insert_rows(connection, _INSERT, map(_row, numbered))


def _row(entry: AuditEntry) -> dict[str, object]:
    return {"id": entry.id, "at_ms": entry.at_ms, "who": entry.who, "group": entry.group, "entry": entry}


def _read(connection: Connection, asked: AuditListQuery) -> tuple[AuditEntry, ...]:
    wanted = select(AUDIT.c.entry).where(AUDIT.c.id > asked.after).order_by(AUDIT.c.id).limit(asked.limit + 1)
    if asked.who is not None:
        wanted = wanted.where(AUDIT.c.who == asked.who)
    if asked.group is not None:
        wanted = wanted.where(AUDIT.c.group == asked.group)
    return tuple(connection.execute(wanted).scalars())


def _prune(connection: Connection, before_ms: int, keep: int) -> bool:
    """One statement; where clocks of managers differ, entries go a little early or late."""
    surplus = select(NUMBERS.c.last_id - keep).scalar_subquery()
    oldest = select(AUDIT.c.id).order_by(AUDIT.c.id).limit(PRUNED_AT_ONCE).scalar_subquery()
    gone = delete(AUDIT).where(AUDIT.c.id.in_(oldest), or_(AUDIT.c.at_ms < before_ms, AUDIT.c.id <= surplus))
    return bool(connection.execute(gone).rowcount == PRUNED_AT_ONCE)
