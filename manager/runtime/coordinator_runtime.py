"""The shell around the core: requests in, answers out, deadlines on time, rows before answers."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

import structlog

from manager.background.supervision import once
from manager.clock import read_clocks
from manager.core.alarms.book import AlarmBook
from manager.core.coordinator import DeadlineError, GroupCoordinator
from manager.core.views import groups
from manager.core.views.group_status import GroupStatus, status_of
from manager.metrics.groups import GroupReader
from manager.metrics.turn_observer import TurnObserver
from manager.outbox.feed import Feed
from manager.runtime.loop_share import LoopShare, for_one_pass
from manager.runtime.replies import UNAVAILABLE, PendingReply, Reply, deliver
from manager.runtime.slot_loader import SlotLoader
from manager.runtime.writer import STALL_S, Writer
from protocol.errors import unexpected
from protocol.messages.membership import HeartbeatRequest
from telemetry.cause_ids import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from manager.core.group import Group
    from manager.core.member import Connection
    from manager.core.stored_rows import Row
    from manager.core.turn import Outcome, Turn
    from manager.runtime.commits import Commit
    from manager.runtime.routing import GroupRouting
    from manager.settings import GroupSettings
    from manager.storage.base import Storage
    from protocol.errors import Failure
    from protocol.messages.alarms import AlarmRule, Silence
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.base import Request
    from protocol.messages.groups import GroupSummary

log = structlog.get_logger(__name__)


class CoordinatorRuntime:
    """The groups of this process's slots on one event loop."""

    def __init__(self, settings: GroupSettings, storage: Storage, routing: GroupRouting) -> None:
        self._storage = storage
        self._routing = routing
        self._coordinator = GroupCoordinator(settings, lambda: str(uuid.uuid4()))
        self.feed = Feed(storage.events)
        self._observer = TurnObserver()
        self.meter = self._observer.meter
        self.meter.instruments.read_at_scrape(GroupReader(self))
        self._writer = Writer(
            storage,
            self._routing,
            self.meter,
            on_lost=self._evict,
            on_loaded=self._load_group,
            on_durable=self._durable,
            on_fenced=self._fenced,
            on_broken=self._break,
        )
        self.slots = SlotLoader(self._coordinator, storage, self._routing, self._writer, self.meter)
        self.broken = asyncio.Event()
        """Set when nothing can be stored any more, however well the storage is: the process has to end."""
        self.transfers_wanted = asyncio.Event()
        """Set when a transfer was begun or cancelled here: word is to be carried at once."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0
        self._serving = False
        self.share = LoopShare()
        self.parked = 0
        """How many requests wait for their answers, the connections of all of them still open."""

    @property
    def is_ready(self) -> bool:
        """Whether requests are taken (from `begin` to `stop`) and can be stored."""
        return self._serving and self.is_healthy

    @property
    def is_healthy(self) -> bool:
        """Whether the storage does what it is asked to."""
        return self._writer.is_healthy

    @property
    def put_off(self) -> int:
        """How many requests wait for a later pass of the event loop."""
        return len(self.share)

    def begin(self) -> None:
        """Take requests, though of no group yet; the storage is open."""
        self.feed.open()
        self._writer.start()
        self._serving = True
        self.meter.loop_lag.start()

    async def stop(self) -> None:
        """Answer whatever still waits, store what was decided, close the storage: `2 * STALL_S` at most."""
        self._serving = False
        self.feed.close()
        self.meter.loop_lag.stop()
        if self._timer is not None:
            self._timer.cancel()
        for name in self._coordinator.names():
            self._evict(name)
        await self._writer.stop()
        await asyncio.wait([once("closing the storage", self._storage.close)], timeout=STALL_S)

    def _fenced(self, slots: Collection[int]) -> None:
        self.slots.fenced(slots)

    def _break(self) -> None:
        self._serving = False
        self.broken.set()

    def use_alarms(
        self, rules: tuple[AlarmRule, ...], silences: tuple[Silence, ...], unread: frozenset[str]
    ) -> None:
        """Have all groups looked at by these rules and silences from now on.

        `unread` are the names of rules that cannot be read.
        """
        self._coordinator.use_alarms(AlarmBook(rules, silences, unread), read_clocks())
        self._arm()

    # Requests, connections, deadlines.

    async def ask(self, group: str, request: Request, connection: Connection | None = None) -> Outcome:
        """Put `request` to the group and wait for its one answer.

        Cancelling this means that the caller's connection is gone, which the group may act on
        (protocol §4, Broken connections). Without a `connection` the request has one of its own.
        """
        pending = PendingReply(connection)
        if self.put(group, request, pending):
            urgent = isinstance(request, HeartbeatRequest)
            outcome = pending.outcome or await self._wait(pending, urgent=urgent)
        else:
            outcome = await self._routing.turn_away(group, request)
        self.meter.answered(type(request), outcome)
        return outcome

    def put(self, group: str, request: Request, reply: Reply) -> bool:
        """Put `request` to the group, whose answer is delivered to `reply`, now or later.

        `closed` is to be called when the reply's connection is.

        Returns:
            False if the group is not answered for here: then nothing was done.
        """
        instant = read_clocks()
        if self._serving and not self._routing.admits(group, instant.mono):
            self.slots.check_lease()
            return False
        refusal = self._writer.refusal(group) if self._serving else UNAVAILABLE
        if refusal is not None:
            reply.deliver(refusal)
            return True
        try:
            turn = self._coordinator.handle(group, request, reply, instant)
        except Exception as error:  # noqa: BLE001 - a bug in a rule must not take the manager down
            reply.deliver(self._bug(group, error, request))
            return True
        self._observer.turned(type(request), turn)
        self._take(turn)
        return True

    async def _wait(self, pending: PendingReply, *, urgent: bool) -> Outcome:
        """Its answer, once that is there: one transaction may answer a thousand."""
        self.parked += 1
        try:
            outcome = await pending.answered()
        except asyncio.CancelledError:
            self.closed(pending.connection, by_peer=True)
            raise
        finally:
            self.parked -= 1
        if not self.share.admits(urgent=urgent):
            await self.share.wait(urgent=urgent)
        return outcome

    def groups(self) -> list[GroupSummary]:
        """A line for each group, by name."""
        faults = self._writer.reloader.unloadable.faults()
        lines = [*map(groups.summary, self.living()), *map(groups.unreadable, faults)]
        return sorted(lines, key=lambda line: line.group)

    def announced_assignors(self) -> list[GroupAssignors]:
        """What the members of each group that has some announce, by name."""
        return [
            groups.assignors_of(group)
            for group in sorted(self.living(), key=lambda group: group.name)
            if group.members
        ]

    def group_statuses(self) -> list[GroupStatus]:
        """The figures of each group, by name."""
        faults = self._writer.reloader.unloadable.faults()
        lines = [
            *map(status_of, self.living()),
            *(GroupStatus(group=name, fault=fault) for name, fault in faults.items()),
        ]
        return sorted(lines, key=lambda line: line.group)

    def living(self) -> Iterator[Group]:
        """The groups that exist, for those who only look."""
        return self._coordinator.living()

    def _take(self, turn: Turn) -> None:
        self._writer.take(turn)
        self._arm()

    def closed(self, connection: Connection, *, by_peer: bool) -> None:
        """A connection that requests came over is gone (protocol §4, Broken connections).

        Args:
            connection: the one; telling it twice changes nothing.
            by_peer: whether the other end has closed it, or died; not if this manager did.
        """
        self.slots.check_lease()
        try:
            turn = self._coordinator.closed(connection, read_clocks(), by_peer=by_peer)
        except Exception as error:  # noqa: BLE001 - as in `ask`; nobody is there to hear of it
            self._bug(connection.group, error)
            return
        if turn is not None:
            self._observer.turned(None, turn)
            self._take(turn)

    def _arm(self) -> None:
        """Have `_advance` called when the next deadline is due; one timer serves them all."""
        due = self._coordinator.next_deadline()
        if due is None or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        delay_ms = max(due - read_clocks().mono, 0)
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._advance)

    def _advance(self) -> None:
        self._timer = None
        self.slots.check_lease()
        try:
            for turn in for_one_pass(self._coordinator.advance(read_clocks())):
                self._observer.turned(None, turn)
                self._writer.take(turn)
        except DeadlineError as error:
            self._bug(error.group, error)
        finally:
            self._arm()

    def _bug(self, group: str, error: Exception, request: Request | None = None) -> Failure:
        """A rule raised: the group in memory is not to be trusted any more, what is stored is."""
        self.meter.bug()
        cause_id = new_cause_id()
        known = self._coordinator.group(group)
        log.error(
            "bug in a group rule",
            cause_id=cause_id,
            group=group,
            generation=known.generation if known is not None else None,
            member=getattr(request, "member_id", None),
            request=type(request).__name__ if request is not None else None,
            exc_info=error,
        )
        self._writer.lose(group)
        return unexpected(cause_id)

    def _evict(self, group: str) -> None:
        deliver((parked, UNAVAILABLE) for parked in self._coordinator.evict(group))

    def _load_group(self, group: str, rows: Iterable[Row]) -> None:
        turn = self._coordinator.load(group, rows, read_clocks())
        self._observer.loaded(turn)
        self._take(turn)

    def _durable(self, commit: Commit) -> None:
        for name in commit.groups:
            self._coordinator.bury(name)
        if commit.has_events:
            self.feed.wake()
