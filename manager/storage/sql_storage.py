"""The storage over SQL: SQLite by default, PostgreSQL by another URL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text

from manager.storage.alarm_table import AlarmTable
from manager.storage.audit_table import AuditTable
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.database import ANSWER_S, OpenedFile, database_at, first_line
from manager.storage.event_log import SqlEventLog
from manager.storage.event_numbering import append
from manager.storage.herd_table import HerdTable
from manager.storage.lease_table import LeaseTable, hold_fence
from manager.storage.migrate import VERSION_TABLE, upgrade, with_schema
from manager.storage.row_reader import group_sizes, read_rows, still_unreadable
from manager.storage.row_writer import write_rows
from manager.storage.stored_groups import announced_assignors, group_statuses, summaries
from manager.storage.tally import TransactionTally
from manager.storage.token_table import TokenTable
from manager.storage.transfer_table import TransferTable
from protocol.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from manager.core.stored_rows import Record, Row, Unreadable
    from manager.core.views.group_status import GroupStatus
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.groups import GroupSummary

T = TypeVar("T")

_TOUCH = text(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # noqa: S608 - a constant


class SqlStorage:
    """`Storage` over any database that SQLAlchemy and we know; `tally` counts what is to be stored."""

    def __init__(self, url: str) -> None:
        self._database = database_at(url)
        self.events = SqlEventLog(self._database)
        self._file: OpenedFile | None = None
        self.leases = LeaseTable(self._database)
        self.tokens = TokenTable(self._database)
        self.audit = AuditTable(self._database)
        self.transfers = TransferTable(self._database)
        self.alarms = AlarmTable(self._database)
        self.tally = TransactionTally()
        self.herd = HerdTable(self._database, self._write)

    async def open(self) -> None:
        """Connect and migrate."""
        await with_schema(self._database, upgrade)
        self._file = None if self.path is None else OpenedFile.at(self.path)

    async def group_sizes(self, groups: Collection[str] | None = None) -> dict[str, int]:
        """Count the keys of every table."""
        return await self._database.transact(partial(group_sizes, groups=groups))

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        """Read every table once."""
        return await self._database.read(partial(read_rows, groups=groups))

    async def still_unreadable(self, rows: Collection[Unreadable]) -> frozenset[str]:
        """Read each by its key."""
        return await self._database.read(partial(still_unreadable, rows=rows))

    @property
    def is_shared(self) -> bool:
        """Whether other managers may use the database as well."""
        return self._database.url.get_backend_name() != "sqlite"

    @property
    def path(self) -> Path | None:
        """The database's file; None for servers and databases in memory."""
        return self._database.path

    async def summaries(self) -> list[GroupSummary]:
        """A line for each group that is stored, by name.

        Raises:
            StorageError: try again later.
        """
        return await self._database.transact(summaries)

    async def announced_assignors(self) -> list[GroupAssignors]:
        """What the members of each stored group announce, by name.

        Raises:
            StorageError: try again later.
        """
        return await self._database.transact(announced_assignors)

    async def group_statuses(self) -> list[GroupStatus]:
        """The figures of each group that is stored, by name.

        Raises:
            StorageError: try again later.
        """
        return await self._database.transact(group_statuses)

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        """One transaction, one statement a table and direction; the fence first, events last."""
        await self._write(partial(_commit, changes=changes, fence=fence))

    async def probe(self) -> None:
        """Write the schema's version once more."""
        await self._write(lambda connection: connection.execute(_TOUCH))

    async def _write(self, work: Callable[[Connection], T], within_s: float | None = ANSWER_S) -> T:
        """A transaction; what is written to a file that is not there any more is gone with the process."""
        with self.tally.counting():
            self._check_file()
            done = await self._database.transact(work, within_s)
            self._check_file()
            return done

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()

    def _check_file(self) -> None:
        try:
            if self._file is not None:
                self._file.check()
        except OSError as error:
            raise StorageError(first_line(error)) from error


def _commit(connection: Connection, changes: Sequence[Record], fence: Mapping[int, int]) -> None:
    hold_fence(connection, fence)
    write_rows(connection, [change for change in changes if not isinstance(change, Event)])
    append(connection, [change for change in changes if isinstance(change, Event)])
