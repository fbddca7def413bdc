"""One manager process: the real core and the real rules of group commit, on a clock and a store of ours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manager.cluster.held_slots import SlotState
from manager.core.coordinator import GroupCoordinator
from manager.core.member import Parked
from manager.core.turn import ClockReading
from manager.runtime.commits import Commits
from protocol.errors import ErrorCode, Failure
from protocol.messages.events import Event
from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse
from tests.simulation.slot_controller import SimSlotController
from tests.simulation.store import apply, in_order
from tests.simulation.violations import hold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from manager.cluster.held_slots import HeldSlots
    from manager.core.member import Connection
    from manager.core.turn import Turn
    from manager.runtime.commits import Commit
    from manager.settings import GroupSettings
    from protocol.messages.base import Request
    from tests.simulation.cluster import Cluster
    from tests.simulation.plan import Weather
    from tests.simulation.store import Rows

DOWN = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "connection refused")
UNAVAILABLE = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the storage failed")
ELSEWHERE = Failure(ErrorCode.NOT_COORDINATOR, "another manager has the group")
LOADING = Failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the group is being loaded")
RETRY_MS = 200
LATE_MS = 4000
CLOCKS_DIFFER_MS = 300_000
RELOAD_CHECK_EVERY = 16


class Asked(Parked):
    """A request at a manager; `deliver` carries the one answer back, if there is still a way.

    An answer may leave when its group is gone and another has its name: `deleted` says of which one it tells.
    """

    __slots__ = ("arrived", "deleted", "deliver", "group", "request")

    def __init__(
        self,
        group: str,
        request: Request,
        arrived: int,
        deliver: Callable[[Any], None],
        connection: Connection,
    ) -> None:
        super().__init__(connection)
        self.group = group
        self.request = request
        self.arrived = arrived
        self.deliver = deliver
        self.deleted = 0


class SimManager:
    """Has the groups of its slots, for as long as its lease lasts. `life` counts its processes.

    Its monotonic clock is nobody else's: it runs as fast as theirs, and shows another time.
    """

    def __init__(self, number: int, cluster: Cluster, settings: GroupSettings) -> None:
        self.number = number
        self.cluster = cluster
        self.world = cluster.world
        self.settings = settings
        self.is_up = True
        self.is_paused = False
        self.life = 0
        self.requests = 0
        self.asked: dict[Asked, None] = {}
        self._inbox: list[Callable[[], None]] = []
        self._clock_ms = cluster.world.some(0, CLOCKS_DIFFER_MS)
        self._begin_life()

    def _begin_life(self) -> None:
        self.coordinator = GroupCoordinator(self.settings, self.cluster.new_id)
        self.commits = Commits()
        self._rows: dict[str, Rows] = {}
        self._is_busy = False
        self._armed: int | None = None
        self._turns = 0
        self._settling: list[tuple[Collection[str], Callable[[], None]]] = []
        self.controller = SimSlotController(self)
        self.cluster.began(self)

    @property
    def weather(self) -> Weather:
        """What its transactions go through."""
        return self.cluster.weather

    @property
    def mono(self) -> int:
        """Its monotonic clock, in ms."""
        return self.world.now + self._clock_ms

    @property
    def leases(self) -> HeldSlots:
        """What it believes to have."""
        return self.controller.leases

    @property
    def instant(self) -> ClockReading:
        """The present moment; the wall clock differs from manager to manager, as the other one does."""
        return ClockReading(self.mono, self.mono)

    def some_time(self, slowness: float = 1.0) -> int:
        """How long a message to the store, or from there, is under way; at times longer than any lease."""
        low, high = self.weather.commit_ms
        late_ms = self.world.some(0, LATE_MS) if self.world.happens(self.weather.late) else 0
        return self.world.some(low, int(high * slowness)) + late_ms

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have `action` happen then, if this life of the process is there then."""
        life = self.life
        self.world.after(delay_ms, lambda: self.when_awake(action) if life == self.life else None)

    # Requests, connections, deadlines.

    def receive(self, asked: Asked) -> None:
        """A request arrives; a frozen process finds it when it thaws."""
        if not self.is_up:
            asked.deliver(DOWN)
            return
        self.asked[asked] = None
        self.when_awake(lambda: self._handle(asked))

    def closed(self, connection: Connection, life: int) -> None:
        """A connection to this life of the manager closed."""
        if life == self.life:
            self.when_awake(lambda: self._closed(connection))

    def _handle(self, asked: Asked) -> None:
        self.check_lease()
        self.requests += 1
        if not self.leases.serves(asked.group):
            self._turn_away(asked)
        elif self.commits.is_lost(asked.group):
            self._answer(asked, UNAVAILABLE)
        else:
            turn = self.coordinator.handle(asked.group, asked.request, asked, self.instant)
            self._take(turn, asked.request)

    def _turn_away(self, asked: Asked) -> None:
        if self.leases.state(self.leases.slot_of(asked.group)) is not SlotState.LOADING:
            self._answer(asked, ELSEWHERE)
        elif isinstance(asked.request, HeartbeatRequest):
            self._answer(asked, HeartbeatResponse(tasks_revision=asked.request.tasks_revision or 0))
        else:
            self._answer(asked, LOADING)

    def _closed(self, connection: Connection) -> None:
        self.check_lease()
        parked = connection.parked
        turn = self.coordinator.closed(connection, self.instant, by_peer=True)
        if turn is not None:
            if isinstance(parked, Asked) and parked.settled:
                del self.asked[parked]
            self._take(turn)

    def _arm(self) -> None:
        due = self.coordinator.next_deadline()
        if due is not None and (self._armed is None or due < self._armed):
            self._armed = due
            self.world.after(due - self.mono, partial(self._due, self.life, due))

    def _due(self, life: int, due: int) -> None:
        if life == self.life and due == self._armed:
            self.when_awake(self._tick)

    def _tick(self) -> None:
        self._armed = None
        self.check_lease()
        for turn in self.coordinator.advance(self.instant):
            self._take(turn)
        self._arm()

    # Freezing, dying.

    def when_awake(self, action: Callable[[], None]) -> None:
        """Now, or when it thaws; not if it is down."""
        if self.is_paused:
            self._inbox.append(action)
        elif self.is_up:
            action()

    def pause(self, for_ms: int) -> None:
        """Freeze the process; connections stay open, deadlines pass unseen."""
        self.is_paused = True
        self.world.after(for_ms, partial(self._thaw, self.life))

    def _thaw(self, life: int) -> None:
        if life == self.life:
            self.is_paused = False
            inbox, self._inbox = self._inbox, []
            for action in inbox:
                self.when_awake(action)

    def crash(self, down_ms: int) -> None:
        """Everything in memory is lost; the requests in flight see their connections break."""
        self.is_up = self.is_paused = False
        self.life += 1
        self._inbox = []
        lost, self.asked = self.asked, {}
        for asked in lost:
            asked.deliver(DOWN)
        self.world.after(down_ms, self._come_back)

    def _come_back(self) -> None:
        self.is_up = True
        self._begin_life()

    # Slots come and go.

    def check_lease(self) -> None:
        """Whoever was away for too long has no group any more: this comes before anything else."""
        if self.mono >= self.leases.lapses_at:
            self.step_down(self.leases.lapse())

    def close(self, slots: Collection[int]) -> list[str]:
        """Let the groups of these slots go; what was decided is still stored."""
        names = [name for name in self.coordinator.names() if self.leases.slot_of(name) in slots]
        for name in names:
            for parked in self.coordinator.evict(name):
                self._answer(parked, ELSEWHERE)
        return names

    def step_down(self, slots: Collection[int]) -> None:
        """These slots are another's: nothing of them is stored any more."""
        for name in self.commits.gathered():
            if self.leases.slot_of(name) in slots:
                for parked, _ in self.commits.forget(name):
                    self._answer(parked, UNAVAILABLE)
        self.close(slots)

    def when_settled(self, groups: Collection[str], action: Callable[[], None]) -> None:
        """Have `action` happen when none of these groups has rows on the way."""
        self._settling.append((groups, action))
        self._look_who_is_settled()

    def _look_who_is_settled(self) -> None:
        settling, self._settling = self._settling, []
        for groups, action in settling:
            if all(self.commits.is_settled(group) for group in groups):
                action()
            else:
                self._settling.append((groups, action))

    def read(self, slots: Collection[int]) -> dict[str, Rows]:
        """What is stored of the groups of these slots, at this moment."""
        wanted = [group for group in self.cluster.groups if self.leases.slot_of(group) in slots]
        return {group: self.cluster.store.rows(group).copy() for group in wanted}

    def take_up(self, stored: Mapping[str, Rows]) -> None:
        """Groups were read: those that are still ours are served from now on."""
        for group, rows in stored.items():
            if self._is_ours(group):
                self._rows[group] = rows
                self.commits.reloaded(group)
                self._take(self.coordinator.load(group, in_order(rows), self.instant))

    def _is_ours(self, group: str) -> bool:
        return self.leases.state(self.leases.slot_of(group)) is not None

    def hand_over(self) -> None:
        """In order, to those who live."""
        give = self.leases.leave()
        if any(give.values()):
            self.controller.hand_over(give)

    def _restore(self) -> None:
        """What was lost is read again under new epochs: what is still under way can do no harm after that."""
        if self._is_busy or not self._to_restore():
            return
        store = self.cluster.store
        if store.is_down or store.is_full:
            self._restore_soon()
            return
        slots = sorted({self.leases.slot_of(group) for group in self._to_restore()})
        self.step_down(self.leases.retook(slots, store.leases.keep(self.controller.me, slots)))
        stored = {group: store.rows(group).copy() for group in self._to_restore()}
        epochs, _ = self.leases.epochs(stored)
        self._is_busy = True
        self.later(self.some_time(slowness=0.2), partial(self._restored, stored, epochs))

    def _restored(self, stored: Mapping[str, Rows], epochs: Mapping[int, int]) -> None:
        """Of what was read, that is taken up whose slots have been ours since, under the same epochs."""
        self._is_busy = False
        present, _ = self.leases.epochs(stored)
        slots = {slot for slot, epoch in epochs.items() if present.get(slot) == epoch}
        served = {
            group: rows
            for group, rows in stored.items()
            if self.leases.serves(group) and self.leases.slot_of(group) in slots
        }
        self.take_up(served)
        if len(served) < len(stored):
            self._restore_soon()
        self._commit()

    def _to_restore(self) -> tuple[str, ...]:
        for group in self.commits.to_reload():
            if not self.leases.serves(group):
                self.commits.reloaded(group)
        return self.commits.to_reload()

    def _restore_soon(self) -> None:
        """After a pause: storage that refuses what is read and written at once would keep it spinning."""
        self.later(RETRY_MS, self._restore)

    # Turns and transactions.

    def _take(self, turn: Turn, request: Request | None = None) -> None:
        self._arm()
        self.cluster.watch.whereabouts.decided(turn, request)
        self._check_turn(turn)
        self._deliver(self.commits.take(turn))
        self._commit()

    def _check_turn(self, turn: Turn) -> None:
        name = turn.group.name
        rows = self._rows[name]
        for asked, _ in turn.answers:
            assert isinstance(asked, Asked)
            asked.deleted = rows.deleted
        for change in turn.changes:
            if not isinstance(change, Event):
                apply(rows, change)
        live = self.coordinator.group(name)
        self.cluster.watch.check_memory(live, rows)
        self._turns += 1
        if self._turns % RELOAD_CHECK_EVERY == 0 and live is not None:
            self.cluster.watch.check_reload(live, self.settings, rows)

    def _commit(self) -> None:
        if self._is_busy or not self.commits.has_work:
            return
        self._is_busy = True
        commit = self.commits.begin()
        fence, foreign = self.leases.epochs(commit.groups)
        hold("nothing is written for what is another's", not foreign, foreign)
        self.world.after(self.some_time(), partial(self._reach_store, self.life, commit, fence))

    def _reach_store(self, life: int, commit: Commit, fence: dict[int, int]) -> None:
        """What a process that died had sent may arrive or not; an answer may be lost after it was done."""
        fails = self.world.happens(self.weather.failed)
        if (life != self.life or fails) and self.world.happens(0.5):
            done = False
        else:
            done = self.cluster.store.commit(commit.changes, fence)
        if life == self.life:
            self.when_awake(lambda: self._committed(commit, is_known=done and not fails))

    def _committed(self, commit: Commit, *, is_known: bool) -> None:
        self._is_busy = False
        if is_known:
            self._deliver(self.commits.committed().all_answers())
            for group in commit.groups:
                self.coordinator.bury(group)
            self._restore()
        else:
            self._lose(commit)
            self._restore_soon()
        self._look_who_is_settled()
        self._commit()

    def _lose(self, commit: Commit) -> None:
        for parked, _ in self.commits.failed():
            self._answer(parked, UNAVAILABLE)
        for group in commit.groups:
            if not self._is_ours(group):
                self.commits.reloaded(group)
            for parked in self.coordinator.evict(group):
                self._answer(parked, UNAVAILABLE)

    # Answers.

    def _deliver(self, answers: Iterable[tuple[Parked, Any]]) -> None:
        for parked, outcome in answers:
            self._answer(parked, outcome)

    def _answer(self, asked: Parked, outcome: Any) -> None:
        """Invariant 3: whatever arrived is answered once; what the core gave up is not there any more."""
        assert isinstance(asked, Asked)
        hold("every request is answered once", asked in self.asked, outcome)
        del self.asked[asked]
        if not isinstance(outcome, Failure):
            rows = self.cluster.store.rows(asked.group)
            self.cluster.watch.check_answer(asked, outcome, rows)
        asked.deliver(outcome)
