"""The rules and silences of the herd: one document each, replaced as a whole if it is as it was seen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, select, update

from manager.storage.base import StorageError
from manager.storage.firing_alarms import read_page
from manager.storage.schema import METADATA
from protocol.messages.alarms import AlarmRule, Silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from manager.storage.database import Database
    from manager.storage.firing_alarms import FiringPage, FiringQuery

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
    """What stands in a document, and as of which version; 0 is the one that nobody has written."""

    version: int
    entries: tuple[T, ...]


class AlarmTable:
    """What a manager needs of it; every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def versions(self) -> dict[str, int]:
        """Of both documents; what has not changed need not be read again."""
        return await self._database.transact(_versions)

    async def rules(self) -> Versioned[AlarmRule]:
        """All rules, in their order."""
        return await self._database.transact(partial(_read, name=RULES, kind=AlarmRule))

    async def silences(self) -> Versioned[Silence]:
        """All silences that were kept, ended ones, too."""
        return await self._database.transact(partial(_read, name=SILENCES, kind=Silence))

    async def put_rules(self, rules: Sequence[AlarmRule], seen: int) -> bool:
        """Replace all rules if they are of the version that was `seen`; returns whether it was done."""
        return await self._database.transact(partial(_write, name=RULES, entries=rules, seen=seen))

    async def put_silences(self, silences: Sequence[Silence], seen: int) -> bool:
        """Replace all silences, unless they are not of the version that was `seen`."""
        return await self._database.transact(partial(_write, name=SILENCES, entries=silences, seen=seen))

    async def firing(self, asked: FiringQuery) -> FiringPage:
        """Some of what fires in any group, as it is stored; the worst first, then the newest."""
        return await self._database.transact(partial(read_page, asked=asked))


def _versions(connection: Connection) -> dict[str, int]:
    found = connection.execute(select(DOCUMENTS.c.name, DOCUMENTS.c.version))
    return {name: version for name, version in found}  # noqa: C416 - rows are no pairs to mypy


def _read(connection: Connection, name: str, kind: Any) -> Versioned[Any]:
    wanted = select(DOCUMENTS.c.version, DOCUMENTS.c.body).where(DOCUMENTS.c.name == name)
    version, body = connection.execute(wanted).one()
    try:
        return Versioned(version, msgspec.json.decode(body, type=tuple[kind, ...]))
    except msgspec.MsgspecError as error:
        raise StorageError(f"table alarm_documents, name {name}: {error}") from error


def _write(connection: Connection, name: str, entries: Sequence[Any], seen: int) -> bool:
    """One conditional statement: of two who have seen the same version one is told that it changed."""
    as_seen = (DOCUMENTS.c.name == name) & (DOCUMENTS.c.version == seen)
    body = msgspec.json.encode(tuple(entries))
    return bool(
        connection.execute(update(DOCUMENTS).where(as_seen).values(version=seen + 1, body=body)).rowcount
    )
