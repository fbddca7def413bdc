"""The rules and silences of the herd: one document each, replaced as a whole if it is as it was seen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, select, update

from manager.storage.base import StorageError
from manager.storage.firing_alarms import read_page
from manager.storage.schema import METADATA
from manager.storage.stored_rules import read_rules, with_unread
from protocol.messages.alarms import AlarmRule, Silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from manager.storage.database import Database
    from manager.storage.firing_alarms import FiringPage, FiringQuery
    from manager.storage.stored_rules import UnreadRule

DOCUMENTS = Table(
    "alarm_documents",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Two rows; `body` is JSON."""
RULES: Final = "rules"
SILENCES: Final = "silences"
T = TypeVar("T")


class Versioned(NamedTuple, Generic[T]):
    """What stands in a document, and as of which version; 0 is the one that nobody has written.

    `unread` are the rules in it that this version cannot read.
    """

    version: int
    entries: tuple[T, ...]
    unread: tuple[UnreadRule, ...] = ()


class AlarmTable:
    """What a manager needs of it; every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def versions(self) -> dict[str, int]:
        """Of both documents; what has not changed need not be read again."""
        return await self._database.transact(_versions)

    async def rules(self) -> Versioned[AlarmRule]:
        """All rules, in their order."""
        return await self._database.transact(_read_rules)

    async def silences(self) -> Versioned[Silence]:
        """All silences that were kept, ended ones, too."""
        return await self._database.transact(_read_silences)

    async def put_rules(self, rules: Sequence[AlarmRule], seen: int) -> bool:
        """Replace all rules that can be read, if they are of the version that was `seen`.

        Returns:
            Whether it was done.
        """
        return await self._database.transact(partial(_write_rules, rules=rules, seen=seen))

    async def put_silences(self, silences: Sequence[Silence], seen: int) -> bool:
        """Replace all silences, unless they are not of the version that was `seen`."""
        body = msgspec.json.encode(tuple(silences))
        return await self._database.transact(partial(_write, name=SILENCES, body=body, seen=seen))

    async def firing(self, asked: FiringQuery) -> FiringPage:
        """Some of what fires in any group, as it is stored; the worst first, then the newest."""
        return await self._database.transact(partial(read_page, asked=asked))


def _versions(connection: Connection) -> dict[str, int]:
    found = connection.execute(select(DOCUMENTS.c.name, DOCUMENTS.c.version))
    return {name: version for name, version in found}  # noqa: C416 - rows are no pairs to mypy


def _read_rules(connection: Connection) -> Versioned[AlarmRule]:
    version, body = _read(connection, RULES)
    try:
        return Versioned(version, *read_rules(body))
    except msgspec.MsgspecError as error:
        raise _unreadable(RULES, error) from error


def _read_silences(connection: Connection) -> Versioned[Silence]:
    version, body = _read(connection, SILENCES)
    try:
        return Versioned(version, msgspec.json.decode(body, type=tuple[Silence, ...]))
    except msgspec.MsgspecError as error:
        raise _unreadable(SILENCES, error) from error


def _read(connection: Connection, name: str) -> tuple[int, bytes]:
    wanted = select(DOCUMENTS.c.version, DOCUMENTS.c.body).where(DOCUMENTS.c.name == name)
    version, body = connection.execute(wanted).one()
    return version, body


def _unreadable(name: str, error: msgspec.MsgspecError) -> StorageError:
    return StorageError(f"table alarm_documents, name {name}: {error}")


def _write_rules(connection: Connection, rules: Sequence[AlarmRule], seen: int) -> bool:
    """If these are still the rules that were seen, so are those of them that cannot be read."""
    body = with_unread(rules, _read_rules(connection).unread)
    return _write(connection, RULES, body, seen)


def _write(connection: Connection, name: str, body: bytes, seen: int) -> bool:
    """One conditional statement: of two who have seen the same version one is told that it changed."""
    as_seen = (DOCUMENTS.c.name == name) & (DOCUMENTS.c.version == seen)
    return bool(
        connection.execute(update(DOCUMENTS).where(as_seen).values(version=seen + 1, body=body)).rowcount
    )
