"""A group in each of its states, with the same cast: leader L, follower F, static member S, two tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manager.core import group_states
from manager.core.turn import Turn
from tests.unit.manager.core.bench import Bench, dealt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.manager.core.bench import Ask

KIND = "sparkherd"
TASKS = ("t", "u")


@dataclass
class Scene:
    """A group, who is in it, and the requests that wait; without members the ids are nobody's."""

    bench: Bench
    leader: str = "nobody-1"
    follower: str = "nobody-2"
    static: str = "nobody-3"
    parked: list[Ask] = field(default_factory=list)

    @property
    def everybody(self) -> list[str]:
        """In order of arrival."""
        return [self.leader, self.follower, self.static]

    @property
    def generation(self) -> int:
        """The present one."""
        group = self.bench.coordinator.group(self.bench.name)
        return group.generation if group is not None else 0

    def rejoin(self, member_id: str, metadata: object = None) -> Ask:
        """A join of somebody who is in the group, as it was told last unless `metadata` is given."""
        instance = "s" if member_id == self.static else None
        owned = {t: self.bench.owner(t)[1] for t in self.bench.group.tasks.owned_by(member_id)}
        told = {"owned": owned} if metadata is None else metadata
        return self.bench.join(member_id, instance, kind=KIND, metadata=told)


def unknown() -> Scene:
    """Nobody has heard of it."""
    return Scene(Bench(initial_rebalance_delay_ms=3000))


def empty() -> Scene:
    """Everybody has left; its tasks and an offset are still there."""
    scene = stable()
    scene.bench.leave(*((member, None) for member in (scene.leader, scene.follower)), (scene.static, "s"))
    assert scene.bench.state == "Empty"
    return Scene(scene.bench)


def gathering() -> Scene:
    """In its initial delay; L, F and S are parked."""
    bench = Bench(initial_rebalance_delay_ms=3000)
    bench.create(*TASKS)
    parked = [bench.join(kind=KIND), bench.join(kind=KIND), bench.join(instance_id="s", kind=KIND)]
    leader, follower, static = bench.group.members
    return Scene(bench, leader, follower, static, parked)


def awaiting() -> Scene:
    """All have the new generation, nobody has synced."""
    scene = gathering()
    scene.bench.pass_time(6000)
    scene.parked = []
    return scene


def stable() -> Scene:
    """L owns t, F owns u, S owns nothing."""
    scene = awaiting()
    bench = scene.bench
    owners = dealt([scene.leader, scene.follower], TASKS)
    bench.deal(scene.everybody, owners)
    for task, member in owners.items():
        bench.claim(member, task)
    for member in scene.everybody:
        scene.rejoin(member)
    bench.pass_time()
    if bench.state != "Stable":
        bench.deal(scene.everybody, owners)
    return scene


def preparing() -> Scene:
    """F has rejoined and is parked; L and S are yet to come."""
    scene = stable()
    scene.parked = [scene.rejoin(scene.follower, {"owned": {"u": 1}, "changed": True})]
    return scene


def dead() -> Scene:
    """Deleted, and the deletion is not durable yet."""
    scene = empty()
    group_states.move(Turn(scene.bench.group, scene.bench.instant, str), group_states.BURY)
    return scene


SCENES: dict[str, Callable[[], Scene]] = {
    scene.__name__: scene for scene in (unknown, empty, gathering, preparing, awaiting, stable, dead)
}
