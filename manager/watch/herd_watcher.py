"""The shell of the alarms that are of no group: each manager tells of itself, one of them looks at all.

Who looks is who would have a group of the name `WATCH`: one manager at a time, by its slot's lease; what it
stores carries the slot's epoch, so one that looks for too long stores nothing, and nobody hears of it. While
the database is away every manager tells by itself what it sees of that
(`manager.core.alarms.database_guard`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, Self

import msgspec
import structlog

from manager.background.supervision import Loop
from manager.clock import read_clocks
from manager.core.alarms.book import UNREAD, AlarmBook
from manager.core.alarms.database_guard import DatabaseGuard, notice_of
from manager.core.alarms.findings import Finding
from manager.core.alarms.herd_facts import Attendance, HerdFacts
from manager.core.alarms.herd_watch import HerdWatch
from manager.core.alarms.life import Moment
from manager.outbox.receivers.direct import DirectMessages
from manager.storage.base import StaleEpochError, StorageError
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from manager.background.herd_alarms import HerdAlarms
    from manager.core.alarms.findings import Batch
    from manager.core.alarms.herd_facts import ManagerFigures
    from manager.core.stored_rows import AlarmRow
    from manager.core.turn import ClockReading
    from manager.outbox.receivers.direct import Receivers
    from manager.storage.cluster_state import ManagerIdentity
    from manager.storage.herd_table import HerdTable, HerdView
    from protocol.messages.alarm_notice import AlarmNotice

log = structlog.get_logger(__name__)

WATCH: Final = "alarms of the herd"
"""No group can be called so."""
EVERY_S: Final = 5.0
ANSWER_S: Final = 4.0
"""How long the database may take to be told; one that says nothing is away."""


class Routing(Protocol):
    """Which of several managers looks."""

    def is_mine(self, webhook: str) -> bool:
        """Whether it is this manager, at the moment."""
        ...

    def epochs(self, groups: Iterable[str]) -> Mapping[int, int]:
        """What a transaction carries; raises `StaleEpochError` when it is not this manager's to write."""
        ...


class HerdWatcher:
    """Runs while its `async with` block does; a manager that leaves it has ended in order.

    Args:
        me: this manager.
        table: where all tell of themselves, and what fires is kept.
        alarms: the rules and silences.
        routing: who looks.
        receivers: who is told while the database is away.
        figures: what this manager tells of itself, asked once each time.
        wake: called when there are new events.
        is_alone: whether there can be no other manager.
        firing: is told what fires at each look, and None while another manager looks.
        clock: tells the time.
    """

    def __init__(
        self,
        me: ManagerIdentity,
        table: HerdTable,
        alarms: HerdAlarms,
        routing: Routing,
        receivers: Receivers,
        *,
        figures: Callable[[], ManagerFigures],
        wake: Callable[[], None],
        is_alone: bool,
        firing: Callable[[Sequence[AlarmRow] | None], None] = lambda _: None,
        clock: Callable[[], ClockReading] = read_clocks,
    ) -> None:
        self._me = me
        self._table = table
        self._alarms = alarms
        self._routing = routing
        self._figures = figures
        self._wake = wake
        self._is_alone = is_alone
        self._firing = firing
        self._clock = clock
        self._attendance = Attendance()
        self._watch = HerdWatch()
        self._guard = DatabaseGuard(me.id)
        self._direct = DirectMessages(receivers)
        self._looking: Loop | None = None

    async def __aenter__(self) -> Self:
        if self._is_alone:
            with suppress(StorageError):  # then somebody may be missed who cannot be there
                await self._table.only(self._me)
        self._looking = Loop(
            "watching managers and the database",
            self.step,
            EVERY_S,
            "managers cannot be watched; the database is looked at from here",
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._looking is not None:
            await self._looking.stop()
        await self.leave()

    async def leave(self) -> None:
        """This manager is not missed from now on, if the database can be told."""
        await self._direct.stop()
        with suppress(StorageError):
            await self._table.leave(self._me, ANSWER_S)

    async def step(self) -> None:
        """Tell of this manager, and look; raises `StorageError` when the database is away."""
        fence, figures = self._fence(), self._figures()
        try:
            view = await self._table.tell(self._me, figures, ANSWER_S)
        except StorageError:
            self._tell_directly(figures)
            raise
        knows_silence = self._attendance.told(view.now_ms, view.gap_ms)
        self._guard.well(self._book, view.firing, figures, self._moment)
        self._firing(None if fence is None else view.firing)
        is_news = await self._hand_over()
        if fence is None:
            self._watch.forget()
        elif not is_news:  # then what was seen is not all that fires any more
            await self._look(view, HerdFacts(view.managers, knows_silence), fence)

    @property
    def _book(self) -> AlarmBook:
        known = self._alarms.known
        return UNREAD if known is None else AlarmBook(*known)

    @property
    def _moment(self) -> Moment:
        reading = self._clock()
        return Moment(reading.mono, reading.wall)

    def _fence(self) -> Mapping[int, int] | None:
        """Before anything is read: what is read under an epoch may be written under it."""
        try:
            return self._routing.epochs((WATCH,)) if self._routing.is_mine(WATCH) else None
        except StaleEpochError:
            return None

    async def _look(self, view: HerdView, facts: HerdFacts, fence: Mapping[int, int]) -> None:
        at = self._moment
        looked = self._watch.look(self._book, view.firing, facts, at)
        events = [event for batch in looked.batches if (event := _event_of(batch, at)) is not None]
        if looked.batches:
            try:
                await self._table.store(fence, *_rows_of(looked.batches), events)
            except StaleEpochError:
                self._watch.forget()
                return
        self._watch.accept(looked)
        if events:
            self._wake()

    def _tell_directly(self, figures: ManagerFigures) -> None:
        at = self._moment
        for notice in self._guard.away(self._book, figures, at):
            log.warning("the database is away: an alarm is told from here", rule=notice.rule)
            self._direct.tell(Event(id=0, at_ms=at.wall_ms, type=EventType.ALARM_FIRING, alarm=notice))

    async def _hand_over(self) -> bool:
        """The database is back: what was told without it is kept, and who has not heard of it is told.

        Returns:
            Whether there was anything.
        """
        told = self._guard.take_told()
        if not told:
            return False
        if await self._table.adopt([(row, _past_event(row, self._direct.untold(row.rule))) for row in told]):
            self._wake()
        self._guard.stored()
        for row in told:
            self._direct.drop(row.rule)
        return True


def _past_event(row: AlarmRow, receivers: tuple[str, ...]) -> Event:
    """Of the past: it names those only who were not told."""
    notice = notice_of(Finding.FIRES, row)
    assert notice is not None  # noqa: S101 - for mypy: somebody hears of a single audible alarm
    notice = msgspec.structs.replace(notice, receivers=receivers)
    return Event(id=0, at_ms=row.fired_at_ms, type=EventType.ALARM_FIRING, alarm=notice)


def _event_of(batch: Batch, at: Moment) -> Event | None:
    notice: AlarmNotice | None = batch.notice()
    if notice is None:
        return None
    is_over = batch.finding is Finding.RESOLVES
    log.info("an alarm of the herd", rule=notice.rule, finding=batch.finding.value, alarms=notice.count)
    kind = EventType.ALARM_RESOLVED if is_over else EventType.ALARM_FIRING
    return Event(id=0, at_ms=at.wall_ms, type=kind, alarm=notice)


def _rows_of(batches: Sequence[Batch]) -> tuple[list[AlarmRow], list[AlarmRow]]:
    """What fires, and what is over."""
    fires = [row for batch in batches if batch.finding is not Finding.RESOLVES for row in batch.rows]
    return fires, [row for batch in batches if batch.finding is Finding.RESOLVES for row in batch.rows]
