"""The statements behind slots and leases; each is conditional: of two managers, one finds nothing to do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, or_, select, true, tuple_, update

from manager.storage.base import GoneError, StaleEpochError
from manager.storage.cluster_state import ClusterState, ManagerIdentity, Peer, Slot
from manager.storage.event_numbering import append
from manager.storage.living_managers import HAS_EXPIRED, LIVING, database_now_ms
from manager.storage.migrate import schema_of, take_turns
from manager.storage.schema import MANAGERS, SLOTS
from protocol.errors import StartupError
from protocol.messages.events import Event, EventType
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import ColumnElement, Connection, Row

    from manager.storage.database import Database


_FENCE = tuple_(SLOTS.c.slot, SLOTS.c.epoch).in_(bindparam("fence", expanding=True))
_HOLD = update(SLOTS).where(_FENCE).values(epoch=SLOTS.c.epoch)
_HELD = select(SLOTS.c.slot).where(_FENCE)


def hold_fence(connection: Connection, fence: Mapping[int, int]) -> None:
    """Make sure that these are the slots' epochs, and stay so until the transaction of `connection` ends.

    Raises:
        StaleEpochError: an epoch is not the present one; nothing may be written.
    """
    if not fence:
        return
    present = {"fence": list(fence.items())}
    if connection.execute(_HOLD, present).rowcount != len(fence):
        raise StaleEpochError(tuple(fence.keys() - set(connection.execute(_HELD, present).scalars())))


class LeaseTable:
    """Managers and slots in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prepare(self, slots: int) -> int:
        """Fix the number of slots, if nobody has; returns it."""
        return await self._database.transact(partial(_prepare, slots=slots))

    async def register(self, me: ManagerIdentity, lease_ms: int, *, is_starting: bool) -> None:
        """Be one of the managers from now on.

        A manager that starts under the id and URL of one that seems to live is that one, started again after
        a crash, so it takes over what that one had, at once. Should the other live after all, it finds its
        epochs outdated and itself gone, and ends; and it marks the new one as contested, so that whoever
        starts the other again does not depose that in turn: nobody is taken for a crashed contested one
        before its lease has ended.

        Raises:
            StartupError: the id belongs to another manager that lives.
        """
        work = partial(_register, me=me, lease_ms=lease_ms, is_starting=is_starting)
        if (refusal := await self._database.transact(work)) is not None:
            raise StartupError(refusal)

    async def seize(self, me: ManagerIdentity) -> dict[int, int]:
        """Be the only manager, and have every slot; for who knows that there is no other."""
        return await self._database.transact(partial(_seize, me=me))

    async def renew(self, me: ManagerIdentity, lease_ms: int, within_s: float) -> ClusterState:
        """Prolong the lease, and look around.

        Raises:
            GoneError: no such manager is registered (any more).
            StorageError: it is not known whether it was prolonged.
        """
        return await self._database.transact(partial(_renew, me=me, lease_ms=lease_ms), within_s)

    async def view(self) -> ClusterState:
        """Look around.

        Raises:
            StorageError: the database is away.
        """
        return await self._database.transact(_view)

    async def take(self, me: ManagerIdentity, slots: Collection[int]) -> dict[int, int]:
        """Have those of `slots` that are free, or ours already; returns their new epochs.

        Whatever a transaction of a former holder, ourselves included, still has under way ends before that.
        """
        return await self._database.transact(partial(_take_free, me=me, slots=slots))

    async def keep(self, me: ManagerIdentity, slots: Collection[int]) -> dict[int, int]:
        """Raise the epochs of those of `slots` that are still ours; returns them."""
        ours = SLOTS.c.slot.in_(slots) & (SLOTS.c.holder == me.incarnation)
        return await self._database.transact(partial(_take, me=me, condition=ours))

    async def hand_over(self, give: Mapping[int, tuple[int, str | None]]) -> None:
        """Give slots away: to each its present epoch and its heir. What another has by now stays its own."""
        await self._database.transact(partial(_hand_over, give=give))

    async def leave(self, me: ManagerIdentity) -> None:
        """Be none of the managers any more."""
        gone = delete(MANAGERS).where(MANAGERS.c.incarnation == me.incarnation)
        await self._database.transact(lambda connection: connection.execute(gone))


def _prepare(connection: Connection, slots: int) -> int:
    take_turns(connection)
    present = connection.scalar(select(func.count()).select_from(SLOTS))
    if not present:
        rows = [{"slot": slot, "epoch": 0, "holder": None} for slot in range(slots)]
        connection.execute(insert(SLOTS), rows)
    return present or slots


def _register(connection: Connection, me: ManagerIdentity, lease_ms: int, *, is_starting: bool) -> str | None:
    """Returns why not; that one is contested is stored all the same.

    A manager that was cut off finds out here that a newer one has changed the tables that it writes to.
    """
    schema = schema_of(connection)
    if schema.is_newer:
        return f"--database: a newer sparkherd has made its schema {schema.present}; run that one"
    known = MANAGERS.c.manager_id == me.id
    present = select(MANAGERS, HAS_EXPIRED.label("has_expired")).where(known).with_for_update()
    row = connection.execute(present).first()
    if row is not None:
        if (refusal := _refusal(row, me, is_starting=is_starting)) is not None:
            connection.execute(update(MANAGERS).where(known, MANAGERS.c.url == me.url).values(contested=True))
            return refusal
        inherited = {"holder": me.incarnation, "epoch": SLOTS.c.epoch + 1}
        connection.execute(update(SLOTS).where(SLOTS.c.holder == row.incarnation).values(inherited))
        connection.execute(delete(MANAGERS).where(known))
    connection.execute(insert(MANAGERS).values(**_row(me, database_now_ms() + lease_ms)))
    return None


def _refusal(row: Row[Any], me: ManagerIdentity, *, is_starting: bool) -> str | None:
    """Why `me` may not take the place of the manager in `row`; None if it may."""
    if row.has_expired or row.incarnation == me.incarnation:
        return None
    serves = f"--manager-id {me.id}: a manager of that id serves at {row.url}"
    if row.url != me.url:
        return f"{serves}; take another one"
    if not is_starting:
        return f"{serves} and was started while this one lived; give each an id and a URL of its own"
    if row.contested:
        return f"{serves}, and has ended another one that lived; give each an id and a URL of its own"
    return None


def _seize(connection: Connection, me: ManagerIdentity) -> dict[int, int]:
    connection.execute(delete(MANAGERS))
    connection.execute(insert(MANAGERS).values(**_row(me, None)))
    taken = _take(connection, me, true())
    _tell(connection, me, taken)
    return taken


def _renew(connection: Connection, me: ManagerIdentity, lease_ms: int) -> ClusterState:
    renewed = connection.execute(
        update(MANAGERS)
        .where(MANAGERS.c.incarnation == me.incarnation)
        .values(expires_at_ms=database_now_ms() + lease_ms)
    )
    if not renewed.rowcount:
        raise GoneError(f"manager {me.id} is not registered any more")
    return _view(connection)


def _take_free(connection: Connection, me: ManagerIdentity, slots: Collection[int]) -> dict[int, int]:
    free = or_(SLOTS.c.holder == me.incarnation, SLOTS.c.holder.is_(None), SLOTS.c.holder.not_in(LIVING))
    taken = _take(connection, me, SLOTS.c.slot.in_(slots) & free)
    bereft = MANAGERS.c.incarnation.not_in(select(SLOTS.c.holder).where(SLOTS.c.holder.is_not(None)))
    connection.execute(delete(MANAGERS).where(HAS_EXPIRED, bereft))
    _tell(connection, me, taken)
    return taken


def _hand_over(connection: Connection, give: Mapping[int, tuple[int, str | None]]) -> None:
    for slot, (epoch, heir) in sorted(give.items()):
        connection.execute(
            update(SLOTS)
            .where(SLOTS.c.slot == slot, SLOTS.c.epoch == epoch)
            .values(holder=heir, epoch=epoch + 1)
        )


def _row(me: ManagerIdentity, expires_at_ms: ColumnElement[int] | None) -> dict[str, Any]:
    return {
        "manager_id": me.id,
        "incarnation": me.incarnation,
        "url": me.url,
        "started_at_ms": database_now_ms(),
        "expires_at_ms": expires_at_ms,
        "contested": False,
    }


def _take(connection: Connection, me: ManagerIdentity, condition: ColumnElement[bool]) -> dict[int, int]:
    taken = connection.execute(
        update(SLOTS)
        .where(condition)
        .values(holder=me.incarnation, epoch=SLOTS.c.epoch + 1)
        .returning(SLOTS.c.slot, SLOTS.c.epoch)
    )
    return {row.slot: row.epoch for row in taken}


def _tell(connection: Connection, me: ManagerIdentity, taken: Mapping[int, int]) -> None:
    """Have the outside know who has these slots; the last thing before the commit (see `event_numbering`)."""
    if taken:
        at_ms = connection.scalar(select(database_now_ms()))
        manager = Coordinator(me.id, me.url)
        changed = Event(
            id=0, at_ms=at_ms or 0, type=EventType.MANAGER_CHANGED, manager=manager, slots=len(taken)
        )
        append(connection, [changed])


def _view(connection: Connection) -> ClusterState:
    left = MANAGERS.c.expires_at_ms - database_now_ms()
    peers = connection.execute(select(MANAGERS, left.label("left")).order_by(MANAGERS.c.manager_id))
    slots = connection.execute(select(SLOTS).order_by(SLOTS.c.slot))
    return ClusterState(
        peers=tuple(
            Peer(ManagerIdentity(row.manager_id, row.incarnation, row.url), row.started_at_ms, row.left)
            for row in peers
        ),
        slots=tuple(Slot(row.slot, row.epoch, row.holder) for row in slots),
    )
