"""The log of events in a SQL database: reading it, keeping it short, and how far each webhook has come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import case, delete, func, not_, select, true, update

from manager.storage.base import NO_FENCE, LogPage
from manager.storage.event_numbering import append
from manager.storage.inserts import insert_into
from manager.storage.lease_table import hold_fence
from manager.storage.receiver_health import ReceiverHealth
from manager.storage.schema import CLOCK, EVENTS, WEBHOOKS
from protocol.messages.alarm_receivers import ReceiverState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Select, Update

    from manager.storage.database import Database
    from protocol.messages.events import Event

PRUNED_AT_ONCE = 1000
"""Events that one transaction deletes at most: writers wait for it."""


class SqlEventLog:
    """`EventLog` over the database of a storage that has been opened."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, after: int, limit: int, group: str | None = None) -> LogPage:
        """One statement: events and the state of the log as of one moment."""
        wanted = _page(after, limit, group)
        rows = await self._database.transact(lambda connection: connection.execute(wanted).all())
        events = tuple(row.event for row in rows if row.event is not None)
        log = rows[0]
        through = events[-1].id if len(events) == limit else max(after, log.last_id)
        return LogPage(events, through, log.last_id, log.last_at_ms, log.pruned_through)

    async def latest(self, before: int | None, limit: int, group: str | None = None) -> tuple[Event, ...]:
        """One statement, along the primary key or the index of groups."""
        wanted = select(EVENTS.c.event).order_by(EVENTS.c.id.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(EVENTS.c.id < before)
        if group is not None:
            wanted = wanted.where(EVENTS.c.group == group)
        return await self._database.transact(lambda connection: tuple(connection.execute(wanted).scalars()))

    async def newest(self) -> int:
        """A read of one row."""
        return await self._database.transact(_newest)

    async def prune(self, before_ms: int, keep: int) -> bool:
        """One transaction, `PRUNED_AT_ONCE` events at most."""
        return await self._database.transact(partial(_prune, before_ms=before_ms, keep=keep))

    async def position(self, webhook: str) -> int:
        """Subscribes a webhook that is new."""
        return await self._database.transact(partial(_position, webhook=webhook))

    async def advance(self, webhook: str, position: int) -> None:
        """An older position than the stored one changes nothing."""
        forward = _forward(webhook, position)
        await self._database.transact(lambda connection: connection.execute(forward))

    async def health(self) -> dict[str, ReceiverHealth]:
        """A read of few rows."""
        return await self._database.transact(_health)

    async def part(
        self,
        webhook: str,
        position: int,
        behind: Mapping[str, ReceiverHealth],
        fence: Mapping[int, int] = NO_FENCE,
    ) -> None:
        """A row each."""
        work = partial(_part, webhook=webhook, position=position, behind=behind, fence=fence)
        await self._database.transact(work)

    async def keep_health(
        self,
        webhook: str,
        health: ReceiverHealth,
        told: Event | None = None,
        fence: Mapping[int, int] = NO_FENCE,
    ) -> None:
        """One row, and one event at most."""
        keep = partial(_keep_health, webhook=webhook, health=health, told=told, fence=fence)
        await self._database.transact(keep)


def _page(after: int, limit: int, group: str | None) -> Select[tuple[object, ...]]:
    wanted = select(EVENTS.c.id, EVENTS.c.event).where(EVENTS.c.id > after)
    if group is not None:
        wanted = wanted.where(EVENTS.c.group == group)
    page = wanted.order_by(EVENTS.c.id).limit(limit).subquery()
    return select(CLOCK, page.c.event).select_from(CLOCK.outerjoin(page, true())).order_by(page.c.id)


def _newest(connection: Connection) -> int:
    return int(connection.execute(select(CLOCK.c.last_id)).scalar_one())


def _position(connection: Connection, webhook: str) -> int:
    subscribe = insert_into(WEBHOOKS, connection.dialect.name).on_conflict_do_nothing()
    connection.execute(subscribe, {"webhook": webhook, "position": _newest(connection)})
    mine = select(WEBHOOKS.c.position).where(WEBHOOKS.c.webhook == webhook)
    return int(connection.execute(mine).scalar_one())


def _health(connection: Connection) -> dict[str, ReceiverHealth]:
    known = connection.execute(select(WEBHOOKS).where(WEBHOOKS.c.state.is_not(None)))
    return {
        row.webhook: ReceiverHealth(ReceiverState(row.state), row.since_ms, row.last_error) for row in known
    }


def _part(
    connection: Connection,
    webhook: str,
    position: int,
    behind: Mapping[str, ReceiverHealth],
    fence: Mapping[int, int],
) -> None:
    hold_fence(connection, fence)
    for name, health in sorted(behind.items()):
        _fall_behind(connection, name, position - 1, health)
    connection.execute(_forward(webhook, position))


def _fall_behind(connection: Connection, webhook: str, position: int, health: ReceiverHealth) -> None:
    state = {"state": health.state.value, "since_ms": health.since_ms, "last_error": health.last_error}
    new = insert_into(WEBHOOKS, connection.dialect.name).values(webhook=webhook, position=position, **state)
    is_further = WEBHOOKS.c.position > new.excluded.position
    furthest = case((is_further, WEBHOOKS.c.position), else_=new.excluded.position)
    known = new.on_conflict_do_update(index_elements=["webhook"], set_={"position": furthest, **state})
    connection.execute(known)


def _forward(webhook: str, position: int) -> Update:
    behind = (WEBHOOKS.c.webhook == webhook) & (WEBHOOKS.c.position < position)
    return update(WEBHOOKS).values(position=position).where(behind)


def _keep_health(
    connection: Connection,
    webhook: str,
    health: ReceiverHealth,
    told: Event | None,
    fence: Mapping[int, int],
) -> None:
    """Whether it was away is looked at by the very statement that changes it."""
    hold_fence(connection, fence)
    mine = update(WEBHOOKS).where(WEBHOOKS.c.webhook == webhook)
    mine = mine.values(state=health.state.value, since_ms=health.since_ms, last_error=health.last_error)
    was_away = func.coalesce(WEBHOOKS.c.state, "") == ReceiverState.AWAY.value
    is_back = health.state in {ReceiverState.DELIVERING, ReceiverState.NEW}
    is_news = connection.execute(mine.where(was_away if is_back else not_(was_away))).rowcount > 0
    if is_back and not is_news:
        connection.execute(mine)
    if told is not None and is_news:
        append(connection, [told])


def _prune(connection: Connection, before_ms: int, keep: int) -> bool:
    """The row that orders the log comes last, as in every transaction that locks it."""
    log = connection.execute(select(CLOCK)).one()
    furthest = log.pruned_through + PRUNED_AT_ONCE
    expired = select(func.max(EVENTS.c.id)).where(EVENTS.c.id <= furthest, EVENTS.c.at_ms < before_ms)
    oldest = connection.execute(expired).scalar_one() or 0
    through = min(max(oldest, log.last_id - keep), furthest)
    if through <= log.pruned_through:
        return False
    connection.execute(delete(EVENTS).where(EVENTS.c.id <= through))
    connection.execute(update(CLOCK).values(pruned_through=through).where(CLOCK.c.pruned_through < through))
    return bool(through == furthest)
