"""One manager process: the real core and the real rules of group commit, on a clock and a store of ours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manager.core.coordinator import Coordinator
from manager.core.parked import Parked
from manager.core.turn import Instant
from manager.runtime.commits import Commits
from protocol.errors import ErrorCode, Failure
from protocol.messages.events import Event
from tests.simulation.invariants import hold
from tests.simulation.store import apply, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manager.core.turn import Turn
    from manager.runtime.commits import Batch
    from manager.settings import GroupSettings
    from protocol.messages.base import Request
    from tests.simulation.cluster import Cluster
    from tests.simulation.plan import Weather
    from tests.simulation.store import Rows
    from tests.simulation.world import World

DOWN = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "connection refused")
UNAVAILABLE = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the storage failed")
ELSEWHERE = Failure(ErrorCode.NOT_COORDINATOR, "another manager has the group")
LEASE_MS = 1500
RETRY_MS = 200
RELOAD_CHECK_EVERY = 16


class Asked(Parked):
    """A request at a manager; `deliver` carries the one answer back, if there is still a way."""

    __slots__ = ("arrived", "deliver", "group", "request")

    def __init__(self, group: str, request: Request, arrived: int, deliver: Callable[[Any], None]) -> None:
        super().__init__("sim")
        self.group = group
        self.request = request
        self.arrived = arrived
        self.deliver = deliver


class SimManager:
    """Has the groups it was given, for as long as its lease lasts. `life` counts its processes."""

    def __init__(self, number: int, cluster: Cluster, settings: GroupSettings) -> None:
        self.number = number
        self.cluster = cluster
        self.settings = settings
        self.is_up = True
        self.is_paused = False
        self.life = 0
        self.requests = 0
        self.asked: dict[Asked, None] = {}
        self._inbox: list[Callable[[], None]] = []
        self._begin_life()

    def _begin_life(self) -> None:
        self.coordinator = Coordinator(self.settings, self.cluster.new_id)
        self.commits = Commits()
        self.epochs: dict[str, int] = {}
        self._last_epochs: dict[str, int] = {}
        self.lease_until = self.world.now + LEASE_MS
        self._rows: dict[str, Rows] = {}
        self._is_committing = False
        self._armed: int | None = None
        self._turns = 0

    @property
    def world(self) -> World:
        """Where it runs."""
        return self.cluster.world

    @property
    def weather(self) -> Weather:
        """What its transactions go through."""
        return self.cluster.weather

    @property
    def instant(self) -> Instant:
        """The present moment; the wall clock is nobody's business here."""
        return Instant(self.world.now, self.world.now)

    # Requests, connections, deadlines.

    def receive(self, asked: Asked) -> None:
        """A request arrives; a frozen process finds it when it thaws."""
        if not self.is_up:
            asked.deliver(DOWN)
            return
        self.asked[asked] = None
        self._when_awake(lambda: self._handle(asked))

    def disconnect(self, asked: Asked, life: int) -> None:
        """A connection to this life of the manager closed."""
        if life == self.life:
            self._when_awake(lambda: self._disconnected(asked))

    def _handle(self, asked: Asked) -> None:
        self._check_lease()
        self.requests += 1
        if asked.group not in self.epochs:
            self._answer(asked, ELSEWHERE)
        elif self.commits.is_lost(asked.group):
            self._answer(asked, UNAVAILABLE)
        else:
            self._take(self.coordinator.handle(asked.group, asked.request, asked, self.instant))

    def _disconnected(self, asked: Asked) -> None:
        self._check_lease()
        turn = self.coordinator.disconnect(asked.group, asked, self.instant)
        if turn is not None:
            if asked.settled:
                del self.asked[asked]
            self._take(turn)

    def _arm(self) -> None:
        due = self.coordinator.next_deadline()
        if due is not None and (self._armed is None or due < self._armed):
            self._armed = due
            self.world.after(due - self.world.now, partial(self._due, self.life, due))

    def _due(self, life: int, due: int) -> None:
        if life == self.life and due == self._armed:
            self._when_awake(self._tick)

    def _tick(self) -> None:
        self._armed = None
        self._check_lease()
        for turn in self.coordinator.advance(self.instant):
            self._take(turn)
        self._arm()

    # Freezing, dying.

    def _when_awake(self, action: Callable[[], None]) -> None:
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
                self._when_awake(action)

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

    # Groups come and go.

    def renew_lease(self) -> None:
        """Say that it is still there; only a process that runs and reaches the storage can."""
        if self.is_up and not self.is_paused and not self.cluster.store.is_down:
            self.lease_until = self.world.now + LEASE_MS

    def _check_lease(self) -> None:
        """Whoever was away for too long has no group any more: this comes before anything else."""
        if self.world.now >= self.lease_until:
            for group in tuple(self.epochs):
                self.let_go(group)

    def take_up(self, group: str, epoch: int) -> None:
        """The group is this manager's now."""
        self.epochs[group] = self._last_epochs[group] = epoch
        self.commits.lose(group)
        self._restore()

    def let_go(self, group: str) -> None:
        """The group is this manager's no more: whoever waits is sent away."""
        del self.epochs[group]
        self.commits.restored(group)
        for parked in self.coordinator.evict(group):
            self._answer(parked, ELSEWHERE)

    def _restore(self) -> None:
        if self.cluster.store.is_down:
            self._restore_soon()
            return
        for group in self.commits.to_restore():
            self._rows[group] = dict(self.cluster.store.rows(group))
            self.commits.restored(group)
            self._take(self.coordinator.restore(group, in_order(self._rows[group]), self.instant))

    def _restore_soon(self) -> None:
        """After a pause: storage that refuses what is read and written at once would keep it spinning."""
        self.world.after(RETRY_MS, partial(self._restore_again, self.life))

    def _restore_again(self, life: int) -> None:
        if life == self.life:
            self._when_awake(self._restore)

    # Turns and transactions.

    def _take(self, turn: Turn) -> None:
        self._arm()
        self._check_turn(turn)
        self._deliver(self.commits.take(turn))
        self._commit()

    def _check_turn(self, turn: Turn) -> None:
        name = turn.group.name
        rows = self._rows[name]
        for change in turn.changes:
            if not isinstance(change, Event):
                apply(rows, change)
        live = self.coordinator.group(name)
        self.cluster.watch.check_memory(live, rows)
        self._turns += 1
        if self._turns % RELOAD_CHECK_EVERY == 0 and live is not None:
            self.cluster.watch.check_reload(live, self.settings, rows)

    def _commit(self) -> None:
        if self._is_committing or not self.commits.has_work:
            return
        self._is_committing = True
        batch = self.commits.begin()
        epochs = {group: self._last_epochs[group] for group in batch.groups}
        delay_ms = self.world.some(*self.weather.commit_ms)
        self.world.after(delay_ms, partial(self._reach_store, self.life, batch, epochs))

    def _reach_store(self, life: int, batch: Batch, epochs: dict[str, int]) -> None:
        """What a process that died had sent may arrive or not; an answer may be lost after it was done."""
        fails = self.world.happens(self.weather.failed)
        if (life != self.life or fails) and self.world.happens(0.5):
            done = False
        else:
            done = self.cluster.store.commit(batch.changes, epochs)
        if life == self.life:
            self._when_awake(lambda: self._committed(batch, is_known=done and not fails))

    def _committed(self, batch: Batch, *, is_known: bool) -> None:
        self._is_committing = False
        if is_known:
            self._deliver(self.commits.committed().all_answers())
            for group in batch.groups:
                self.coordinator.bury(group)
            self._restore()
        else:
            self._lose(batch)
            self._restore_soon()
        self.cluster.settled(self)
        self._commit()

    def _lose(self, batch: Batch) -> None:
        for parked, _ in self.commits.failed():
            self._answer(parked, UNAVAILABLE)
        for group in batch.groups:
            if group not in self.epochs:
                self.commits.restored(group)
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
            self.cluster.watch.check_answer(asked.group, asked.request, outcome, rows)
        asked.deliver(outcome)
