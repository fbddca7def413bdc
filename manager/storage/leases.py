"""The statements behind slots and leases; each is conditional: of two managers, one finds nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, or_, select, true, tuple_, update

from manager.cluster.view import Identity, Peer, Slot, View
from manager.storage.base import FencedError, GoneError
from manager.storage.dbclock import database_now_ms
from manager.storage.engine import transaction
from manager.storage.migrate import take_turns
from manager.storage.numbering import append
from manager.storage.schema import MANAGERS, SLOTS
from protocol.errors import StartupError
from protocol.messages.events import Event, EventType
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

HAS_EXPIRED = and_(MANAGERS.c.expires_at_ms.is_not(None), MANAGERS.c.expires_at_ms <= database_now_ms())
LIVING = select(MANAGERS.c.incarnation).where(~HAS_EXPIRED)


async def hold_fence(connection: AsyncConnection, fence: Mapping[int, int]) -> None:
    """Make sure that these are the slots' epochs, and stay so until the transaction of `connection` ends.

    Raises:
        FencedError: an epoch is not the present one; nothing may be written.
    """
    if not fence:
        return
    present = tuple_(SLOTS.c.slot, SLOTS.c.epoch).in_(list(fence.items()))
    held = await connection.execute(update(SLOTS).where(present).values(epoch=SLOTS.c.epoch))
    if held.rowcount != len(fence):
        rows = await connection.execute(select(SLOTS.c.slot).where(present))
        raise FencedError(tuple(fence.keys() - set(rows.scalars())))


class LeaseTable:
    """Managers and slots in the database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def prepare(self, slots: int) -> int:
        """Fix the number of slots, if nobody has; returns it."""
        async with transaction(self._engine) as connection:
            await connection.run_sync(take_turns)
            present = await connection.scalar(select(func.count()).select_from(SLOTS))
            if not present:
                rows = [{"slot": slot, "epoch": 0, "holder": None} for slot in range(slots)]
                await connection.execute(insert(SLOTS), rows)
        return present or slots

    async def register(self, me: Identity, lease_ms: int, *, is_starting: bool) -> None:
        """Be one of the managers from now on.

        A manager that starts under the id and URL of one that seems to live is that one, started again:
        nobody else can be where its requests go. It takes over what that one had, at once. Should the other
        live after all, it finds its epochs outdated and itself gone.

        Raises:
            StartupError: the id belongs to another manager that lives.
        """
        async with transaction(self._engine) as connection:
            known = MANAGERS.c.manager_id == me.id
            row = (
                await connection.execute(
                    select(MANAGERS, HAS_EXPIRED.label("has_expired")).where(known).with_for_update()
                )
            ).first()
            if row is not None:
                is_same = is_starting and row.url == me.url
                if not (is_same or row.has_expired or row.incarnation == me.incarnation):
                    raise StartupError(
                        f"--manager-id {me.id}: a manager of that id serves at {row.url}; take another one"
                    )
                await connection.execute(
                    update(SLOTS)
                    .where(SLOTS.c.holder == row.incarnation)
                    .values(holder=me.incarnation, epoch=SLOTS.c.epoch + 1)
                )
                await connection.execute(delete(MANAGERS).where(known))
            await connection.execute(insert(MANAGERS).values(**_row(me, database_now_ms() + lease_ms)))

    async def seize(self, me: Identity) -> dict[int, int]:
        """Be the only manager, and have every slot; for who knows that there is no other."""
        async with transaction(self._engine) as connection:
            await connection.execute(delete(MANAGERS))
            await connection.execute(insert(MANAGERS).values(**_row(me, None)))
            taken = await _take(connection, me, true())
            await _tell(connection, me, taken)
        return taken

    async def renew(self, me: Identity, lease_ms: int, within_s: float) -> View:
        """Prolong the lease, and look around.

        Raises:
            GoneError: no such manager is registered (any more).
            StorageError: it is not known whether it was prolonged.
        """
        async with transaction(self._engine, within_s) as connection:
            renewed = await connection.execute(
                update(MANAGERS)
                .where(MANAGERS.c.incarnation == me.incarnation)
                .values(expires_at_ms=database_now_ms() + lease_ms)
            )
            if not renewed.rowcount:
                raise GoneError(f"manager {me.id} is not registered any more")
            return await _view(connection)

    async def view(self) -> View:
        """Look around.

        Raises:
            StorageError: the database is away.
        """
        async with transaction(self._engine) as connection:
            return await _view(connection)

    async def take(self, me: Identity, slots: Collection[int]) -> dict[int, int]:
        """Have those of `slots` that are free, or ours already; returns their new epochs.

        Whatever a transaction of a former holder, ourselves included, still has under way ends before that.
        """
        free = or_(SLOTS.c.holder == me.incarnation, SLOTS.c.holder.is_(None), SLOTS.c.holder.not_in(LIVING))
        async with transaction(self._engine) as connection:
            taken = await _take(connection, me, SLOTS.c.slot.in_(slots) & free)
            bereft = MANAGERS.c.incarnation.not_in(select(SLOTS.c.holder).where(SLOTS.c.holder.is_not(None)))
            await connection.execute(delete(MANAGERS).where(HAS_EXPIRED, bereft))
            await _tell(connection, me, taken)
        return taken

    async def keep(self, me: Identity, slots: Collection[int]) -> dict[int, int]:
        """Raise the epochs of those of `slots` that are still ours; returns them."""
        async with transaction(self._engine) as connection:
            return await _take(connection, me, SLOTS.c.slot.in_(slots) & (SLOTS.c.holder == me.incarnation))

    async def hand_over(self, give: Mapping[int, tuple[int, str | None]]) -> None:
        """Give slots away: to each its present epoch and its heir. What another has by now stays its own."""
        async with transaction(self._engine) as connection:
            for slot, (epoch, heir) in sorted(give.items()):
                await connection.execute(
                    update(SLOTS)
                    .where(SLOTS.c.slot == slot, SLOTS.c.epoch == epoch)
                    .values(holder=heir, epoch=epoch + 1)
                )

    async def leave(self, me: Identity) -> None:
        """Be none of the managers any more."""
        async with transaction(self._engine) as connection:
            await connection.execute(delete(MANAGERS).where(MANAGERS.c.incarnation == me.incarnation))


def _row(me: Identity, expires_at_ms: ColumnElement[int] | None) -> dict[str, Any]:
    return {
        "manager_id": me.id,
        "incarnation": me.incarnation,
        "url": me.url,
        "started_at_ms": database_now_ms(),
        "expires_at_ms": expires_at_ms,
    }


async def _take(connection: AsyncConnection, me: Identity, condition: ColumnElement[bool]) -> dict[int, int]:
    taken = await connection.execute(
        update(SLOTS)
        .where(condition)
        .values(holder=me.incarnation, epoch=SLOTS.c.epoch + 1)
        .returning(SLOTS.c.slot, SLOTS.c.epoch)
    )
    return {row.slot: row.epoch for row in taken}


async def _tell(connection: AsyncConnection, me: Identity, taken: Mapping[int, int]) -> None:
    """Have the outside know who has these slots; the last thing before the commit (see `numbering`)."""
    if taken:
        at_ms = await connection.scalar(select(database_now_ms()))
        manager = Coordinator(me.id, me.url)
        changed = Event(
            id=0, at_ms=at_ms or 0, type=EventType.MANAGER_CHANGED, manager=manager, slots=len(taken)
        )
        await append(connection, [changed])


async def _view(connection: AsyncConnection) -> View:
    left = MANAGERS.c.expires_at_ms - database_now_ms()
    peers = await connection.execute(select(MANAGERS, left.label("left")).order_by(MANAGERS.c.manager_id))
    slots = await connection.execute(select(SLOTS).order_by(SLOTS.c.slot))
    return View(
        peers=tuple(
            Peer(Identity(row.manager_id, row.incarnation, row.url), row.started_at_ms, row.left)
            for row in peers
        ),
        slots=tuple(Slot(row.slot, row.epoch, row.holder) for row in slots),
    )
