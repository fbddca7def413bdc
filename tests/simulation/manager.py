"""The manager's half: the real core, a store that lags behind it, crashes, and the invariants each time."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from manager.core.coordinator import Coordinator
from manager.core.group import Group
from manager.core.parked import Parked
from manager.core.rows import Dropped, Row
from manager.core.turn import Instant, Turn
from manager.settings import GroupSettings
from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import JoinResponse
from protocol.messages.ownership import ClaimResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from tests.simulation.world import World

GROUP = "g"
DOWN = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "connection refused")
COMMIT_MS = (0, 20)


class Asked(Parked):
    """A request at the manager; `deliver` carries the answer back, if there is still a way."""

    __slots__ = ("arrived", "deliver")

    def __init__(self, arrived: int, deliver: Callable[[Any], None]) -> None:
        super().__init__("sim")
        self.arrived = arrived
        self.deliver = deliver


class SimManager:
    """One manager at a time; a crash loses what was not committed, and nobody has heard of that."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.settings = GroupSettings(initial_rebalance_delay_ms=500, min_session_timeout_ms=500)
        self._ids = count(1)
        self.store: dict[tuple[type[Row], tuple[Any, ...]], Row] = {}
        self.waiting: list[Turn] = []
        self.asked: list[Asked] = []
        self.crashes = self.requests = 0
        self.is_up = True
        self.life = 0
        self.told: dict[int, tuple[str, ...]] = {}
        self.highest_told = 0
        self.granted: dict[tuple[str, int], str] = {}
        self.coordinator = self._new()

    def _new(self) -> Coordinator:
        return Coordinator(self.settings, lambda: f"id{next(self._ids)}")

    @property
    def instant(self) -> Instant:
        """The present moment; the wall clock is nobody's business here."""
        return Instant(self.world.now, self.world.now)

    @property
    def group(self) -> Group | None:
        """The group as it lives."""
        return self.coordinator.group(GROUP)

    def handle(self, request: Request, deliver: Callable[[Any], None]) -> Asked | None:
        """A request arrives."""
        if not self.is_up:
            deliver(DOWN)
            return None
        self.requests += 1
        asked = Asked(self.world.now, deliver)
        self.asked.append(asked)
        self._take(self.coordinator.handle(GROUP, request, asked, self.instant))
        return asked

    def disconnect(self, asked: Asked, life: int) -> None:
        """A connection to this life of the manager closed."""
        if self.is_up and life == self.life:
            turn = self.coordinator.disconnect(GROUP, asked, self.instant)
            if turn is not None:
                self._take(turn)

    def tick(self, life: int) -> None:
        """Deadlines."""
        if self.is_up and life == self.life:
            for turn in self.coordinator.advance(self.instant):
                self._take(turn)
            self._arm()

    def crash(self, down_ms: int) -> None:
        """Everything in memory is lost; the requests in flight see their connections break."""
        self.crashes += 1
        self.is_up = False
        self.life += 1
        self.waiting = []
        lost, self.asked = self.asked, []
        for asked in lost:
            asked.deliver(DOWN)
        self.world.after(down_ms, self._come_back)

    def _come_back(self) -> None:
        self.is_up = True
        self.coordinator = self._new()
        self._take(self.coordinator.restore(GROUP, self._rows(), self.instant))

    def _rows(self) -> list[Row]:
        return sorted(self.store.values(), key=lambda row: getattr(row, "position", 0))

    def _take(self, turn: Turn) -> None:
        self._arm()
        if not turn.changes and not self.waiting:
            self._answer(turn)
            return
        self.waiting.append(turn)
        if len(self.waiting) == 1:
            life = self.life
            self.world.after(self.world.some(*COMMIT_MS), lambda: self._commit(life))

    def _commit(self, life: int) -> None:
        if life != self.life:
            return
        turns, self.waiting = self.waiting, []
        for turn in turns:
            for change in turn.changes:
                if isinstance(change, Dropped):
                    self.store.pop((change.kind, change.key), None)
                else:
                    self.store[type(change), change.key] = change
        self._check_reload()
        for turn in turns:
            self._answer(turn)
        self.coordinator.bury(GROUP)

    def _answer(self, turn: Turn) -> None:
        for asked, outcome in turn.answers:
            assert isinstance(asked, Asked)
            self.asked.remove(asked)
            self._check_told(outcome)
            asked.deliver(outcome)

    def _arm(self) -> None:
        due = self.coordinator.next_deadline()
        if due is not None:
            life = self.life
            self.world.after(due - self.world.now, lambda: self.tick(life))

    # invariants

    def _check_reload(self) -> None:
        """Invariant 4: reloading from storage gives the same group."""
        again = Group(GROUP, self.settings)
        for row in self._rows():
            again.apply(row)
        live = self.group or Group(GROUP, self.settings)
        assert again.durable() == live.durable()

    def _check_told(self, outcome: Any) -> None:
        """Invariants 1 and 2: a generation is one roster, a token is one owner, and both only grow."""
        if isinstance(outcome, JoinResponse) and outcome.members and not outcome.skip_assignment:
            roster = tuple(member.instance_id or member.member_id for member in outcome.members)
            assert self.told.setdefault(outcome.generation_id, roster) == roster, (
                "a generation was told twice"
            )
            assert outcome.generation_id >= self.highest_told
            self.highest_told = outcome.generation_id
        if isinstance(outcome, ClaimResponse):
            for grant in outcome.granted:
                owner = self.group.herd.owner_of(grant.task) if self.group else None
                before = self.granted.setdefault((grant.task, grant.token), owner or "")
                assert before == (owner or before), f"{grant} has two owners"
