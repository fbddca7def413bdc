"""One history: a herd in bad weather, then calm, then everything has to be in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.states import GroupState
from tests.simulation.liars import lie, steer
from tests.simulation.manager import SimManager
from tests.simulation.network import Network, Weather
from tests.simulation.workers import SimWorker
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

STORM_MS = 15_000
CALM_MS = 25_000
MAX_WAIT_MS = 8_000
"""Longer than any request may be parked."""


@dataclass
class Figures:
    """What a history was made of."""

    steps: int = 0
    requests: int = 0
    crashes: int = 0
    generations: int = 0


class History:
    """Everything that takes part."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.manager = SimManager(self.world)
        self.network = Network(self.world, self.manager)
        self.workers: list[SimWorker] = []
        self.is_calm = False

    def run(self) -> Figures:
        """Let it happen; raises AssertionError where an invariant breaks."""
        for _ in range(self.world.some(1, 4)):
            self.world.after(self.world.some(0, 1000), self._hire)
        for _ in range(8):
            self.world.after(self.world.some(0, 500), lambda: steer(self.world, self.network))
        for every_ms, deed in self._deeds():
            self._again(every_ms, deed)
        self.world.run(STORM_MS)
        self._calm_down()
        self.world.run(STORM_MS + CALM_MS)
        self._check_order()
        manager = self.manager
        return Figures(self.world.steps, manager.requests, manager.crashes, len(manager.told))

    def _deeds(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        return (
            (300, lambda: lie(self.world, self.manager, self.network)),
            (900, lambda: steer(self.world, self.network)),
            (2500, self._hire),
            (3000, self._fire),
            (6000, self._crash),
        )

    def _again(self, every_ms: int, deed: Callable[[], None]) -> None:
        """Do `deed` now and then, as long as the storm lasts."""

        def do() -> None:
            if not self.is_calm:
                deed()
                self._again(every_ms, deed)

        self.world.after(self.world.some(0, 2 * every_ms), do)

    def _hire(self) -> None:
        number = len(self.workers)
        instance = f"s{number % 3}" if self.world.happens(0.3) else None
        wait_ms = 0 if self.world.happens(0.2) else 600
        self.workers.append(SimWorker(self.world, self.network, f"w{number}", instance, wait_ms))

    def _fire(self) -> None:
        alive = [worker for worker in self.workers if worker.is_alive]
        if alive:
            worker = self.world.chance.choice(alive)
            worker.stop() if self.world.happens(0.5) else worker.kill()

    def _crash(self) -> None:
        if self.manager.is_up:
            self.manager.crash(self.world.some(0, 2000))

    def _calm_down(self) -> None:
        self.is_calm = True
        self.network.weather = Weather(lost=0, twice=0, cut=0, delay_ms=(1, 5))

    def _check_order(self) -> None:
        """Invariants 3 and 5: nobody waits for ever, the group is Stable, every runnable task is run."""
        manager = self.manager
        overdue = self.world.now - MAX_WAIT_MS
        late = [asked for asked in manager.asked if asked.arrived < overdue and not asked.settled]
        assert not late, f"{len(late)} requests were never answered"
        alive = [worker for worker in self.workers if worker.is_alive]
        group = manager.group
        if group is None or not alive:
            return
        assert group.state is GroupState.STABLE, group.tell_story()
        running = {task: worker.identity.member_id for worker in alive for task in worker.owned}
        wanted = {row.task for row in group.herd.runnable()}
        assert {task: group.herd.owner_of(task) for task in wanted} == {
            task: running.get(task) for task in wanted
        }, group.tell_story()
