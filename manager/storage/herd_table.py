"""What managers tell of themselves, and the alarms of managers and the database, which are of no group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import BigInteger, Column, Float, Table, Text, delete, select, update

from manager.core.alarms.herd_facts import ManagerFacts, ManagerFigures
from manager.core.stored_rows import AlarmRow
from manager.storage.event_numbering import append
from manager.storage.inserts import insert_into
from manager.storage.lease_table import hold_fence
from manager.storage.living_managers import database_now_ms
from manager.storage.schema import METADATA, Json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from sqlalchemy import Connection

    from manager.storage.cluster_state import ManagerIdentity
    from manager.storage.database import Database
    from protocol.messages.events import Event

T = TypeVar("T")

FIGURES = Table(
    "manager_figures",
    METADATA,
    Column("manager_id", Text, primary_key=True),
    Column("incarnation", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("told_at_ms", BigInteger, nullable=False),
    Column("figures", Json(ManagerFigures), nullable=False),
)
"""Managers that have not ended in order; `told_at_ms` is by the database's clock."""
ALARMS = Table(
    "herd_alarms",
    METADATA,
    Column("rule", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("fired_at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("told_at_ms", BigInteger, nullable=False),
    Column("acknowledged_by", Text),
    Column("acknowledged_at_ms", BigInteger, nullable=False),
    Column("value", Float),
    Column("threshold", Float),
    Column("receivers", Json(tuple[str, ...]), nullable=False),
)
"""What fires; rows as of groups' alarms, which go when the alarm is over."""
FORGOTTEN_AFTER_MS: Final = 86_400_000
"""A manager that has said nothing for a day is not waited for any more."""


class HerdView(NamedTuple):
    """The herd at one moment, `now_ms` by the database's clock.

    `gap_ms` is how long the manager that looks had not told of itself before, None the first time.
    """

    now_ms: int
    gap_ms: int | None
    managers: tuple[ManagerFacts, ...]
    firing: tuple[AlarmRow, ...]


class Write(Protocol):
    """Makes a transaction."""

    def __call__(self, work: Callable[[Connection], T], within_s: float | None = ...) -> Awaitable[T]:
        """Do all that `work` does, or nothing of it; returns what it returns, or raises `StorageError`."""
        ...


class HerdTable:
    """What a manager needs of it; every method raises `StorageError`.

    Args:
        database: where it is.
        write: makes a transaction that is counted among those that store something.
    """

    def __init__(self, database: Database, write: Write) -> None:
        self._database = database
        self._write = write

    async def only(self, me: ManagerIdentity) -> None:
        """There are no other managers: whoever says so knows."""
        others = delete(FIGURES).where(FIGURES.c.manager_id != me.id)
        await self._database.transact(lambda connection: connection.execute(others))

    async def tell(self, me: ManagerIdentity, figures: ManagerFigures, within_s: float) -> HerdView:
        """Tell of this manager, and look around."""
        return await self._write(partial(_tell, me=me, figures=figures), within_s)

    async def leave(self, me: ManagerIdentity, within_s: float) -> None:
        """This manager ends in order, and is not missed."""
        mine = delete(FIGURES).where(FIGURES.c.incarnation == me.incarnation)
        await self._database.transact(lambda connection: connection.execute(mine), within_s)

    async def firing(self) -> tuple[AlarmRow, ...]:
        """What fires of no group; `group` is empty."""
        return await self._database.transact(_firing)

    async def store(
        self,
        fence: Mapping[int, int],
        fires: Collection[AlarmRow],
        over: Collection[AlarmRow],
        events: Sequence[Event],
    ) -> None:
        """Keep what fires, drop what is over, and tell `events`; all or nothing.

        Args:
            fence: the slot, with its epoch, by which this manager is the one to look.
            fires: what is stored of one that fired already, but for when it was told, stays.
            over: alarms that have ended.
            events: what is told of all these.

        Raises:
            StaleEpochError: another manager looks by now.
        """
        work = partial(_store, fence=fence, fires=fires, over=over, events=events)
        await self._write(work)

    async def adopt(self, told: Sequence[tuple[AlarmRow, Event]]) -> int:
        """Keep what fired and was told while the database was away, with its events.

        What fires already, as another manager has told the same, is left as it is, without an event.

        Returns:
            How many of them did not.
        """
        return await self._write(partial(_adopt, told=told))

    async def acknowledge(self, rule: str, subject: str | None, by: str, at_ms: int) -> int:
        """Note who has seen what fires, of one subject or all; the first one who did stays."""
        return await self._database.transact(
            partial(_acknowledge, rule=rule, subject=subject, by=by, at_ms=at_ms)
        )


def _tell(connection: Connection, me: ManagerIdentity, figures: ManagerFigures) -> HerdView:
    now = connection.scalar(select(database_now_ms())) or 0
    mine = select(FIGURES.c.told_at_ms).where(FIGURES.c.manager_id == me.id)
    before = connection.scalar(mine)
    told = insert_into(FIGURES, connection.dialect.name)
    row = {"manager_id": me.id, "incarnation": me.incarnation, "url": me.url, "told_at_ms": now}
    values = {**row, "figures": figures}
    connection.execute(told.values(values).on_conflict_do_update(index_elements=["manager_id"], set_=values))
    managers = [_facts(found, now) for found in connection.execute(select(FIGURES)).mappings()]
    if any(each.silent_ms > FORGOTTEN_AFTER_MS for each in managers):
        connection.execute(delete(FIGURES).where(FIGURES.c.told_at_ms < now - FORGOTTEN_AFTER_MS))
    gap_ms = None if before is None else max(now - before, 0)
    return HerdView(now, gap_ms, tuple(managers), _firing(connection))


def _facts(row: Mapping[Any, Any], now_ms: int) -> ManagerFacts:
    silent_ms = max(now_ms - row["told_at_ms"], 0)
    return ManagerFacts(row["manager_id"], row["incarnation"], row["url"], silent_ms, row["figures"])


def _firing(connection: Connection) -> tuple[AlarmRow, ...]:
    found = connection.execute(select(ALARMS).order_by(ALARMS.c.fired_at_ms.desc())).mappings()
    return tuple(AlarmRow(group="", **row) for row in found)


def _store(
    connection: Connection,
    fence: Mapping[int, int],
    fires: Collection[AlarmRow],
    over: Collection[AlarmRow],
    events: Sequence[Event],
) -> None:
    hold_fence(connection, fence)
    for row in fires:
        keep = insert_into(ALARMS, connection.dialect.name).values(_stored(row))
        told = {"told_at_ms": row.told_at_ms}
        connection.execute(keep.on_conflict_do_update(index_elements=["rule", "subject"], set_=told))
    for row in over:
        connection.execute(delete(ALARMS).where(ALARMS.c.rule == row.rule, ALARMS.c.subject == row.subject))
    append(connection, events)


def _adopt(connection: Connection, told: Sequence[tuple[AlarmRow, Event]]) -> int:
    events = []
    for row, event in sorted(told, key=lambda each: each[0].rule):  # in one order: others do the same now
        keep = insert_into(ALARMS, connection.dialect.name).values(_stored(row)).on_conflict_do_nothing()
        if connection.execute(keep.returning(ALARMS.c.rule)).first() is not None:
            events.append(event)
    append(connection, events)
    return len(events)


def _acknowledge(connection: Connection, rule: str, subject: str | None, by: str, at_ms: int) -> int:
    seen = update(ALARMS).where(ALARMS.c.rule == rule, ALARMS.c.acknowledged_at_ms == 0)
    if subject is not None:
        seen = seen.where(ALARMS.c.subject == subject)
    return connection.execute(seen.values(acknowledged_by=by, acknowledged_at_ms=at_ms)).rowcount


def _stored(row: AlarmRow) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in ALARMS.columns}
