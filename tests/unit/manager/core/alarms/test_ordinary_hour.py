"""An hour of what is ordinary rings nothing, with the rules that `sparkherd alarms init` prints."""

from __future__ import annotations

import random

import msgspec
import pytest

from manager.core.alarms.book import AlarmBook
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.lag import TaskLag
from protocol.states import TaskState
from tests.unit.manager.core.alarms.looks import MINUTE, WALL
from tests.unit.manager.core.bench import Bench

TASKS = tuple(f"t{number}" for number in range(12))
STEP_MS = 10_000
LONG_MS = 10**9
"""A session that needs no heartbeats."""


class Herd(Bench):
    """Three workers whose tasks read a topic; what they do is told every ten seconds."""

    def __init__(self, seed: int) -> None:
        super().__init__(max_session_timeout_ms=LONG_MS)
        self.wall = WALL
        self.chance = random.Random(seed)
        self.book = AlarmBook(DEFAULT_RULES)
        self.coordinator.use_alarms(self.book, self.instant)
        self.batches = dict.fromkeys(TASKS, 0)
        self.totals = dict.fromkeys(TASKS, 0)

    def step(self) -> None:
        """Whoever owns a task has done a batch or two of it, or none for want of rows."""
        for task in TASKS:
            owner, token, state = self.owner(task)
            if owner is None or owner not in self.group.members:
                continue
            if state == "STARTING" and self.chance.random() < 0.3:
                continue
            done = self.chance.choice((0, 1, 1, 2))
            self.batches[task] += done
            self.totals[task] += done * 100
            self.report(
                owner,
                task,
                token,
                TaskState.RUNNING,
                batch_id=self.batches[task],
                metrics={"total_rows": self.totals[task], "load": 0.1, "quarantined": 0},
                lag=TaskLag(at_ms=self.wall + self.now, rows=self.chance.randrange(200), behind_ms=3000),
            )
        self.pass_time(STEP_MS)

    def spread(self, ids: list[str]) -> None:
        """All tasks to these workers, as a rebalance has it: what moves is released, then claimed."""
        owners = {task: ids[place % len(ids)] for place, task in enumerate(TASKS)}
        for member_id in ids:
            owned = {t: self.group.tasks.ownership[t].token for t in self.group.tasks.owned_by(member_id)}
            told = {"owned": owned, "x": self.group.generation}
            self.join(member_id, kind="sparkherd", session_ms=LONG_MS, metadata=told)
        self.deal(ids, owners)
        for task, member_id in owners.items():
            before, token, _ = self.owner(task)
            if before not in {None, member_id}:
                self.release(str(before), **{task: token})
        for member_id in ids:
            mine = [t for t, m in owners.items() if m == member_id and self.owner(t)[0] != m]
            self.claim(member_id, *mine)

    def newcomer(self, ids: list[str]) -> list[str]:
        """A worker comes: those that are there join again, too."""
        ask = self.join(kind="sparkherd", session_ms=LONG_MS)
        for member_id in ids:
            self.join(member_id, kind="sparkherd", session_ms=LONG_MS)
        self.pass_time()
        return [*ids, str(ask.answer.member_id)]

    def replace(self, ids: list[str]) -> list[str]:
        """The first worker is upgraded: it leaves, is away for a while, and comes back as another."""
        self.leave((ids[0], None))
        rest = ids[1:]
        for member_id in rest:
            self.join(member_id, kind="sparkherd", session_ms=LONG_MS)
        self.pass_time()
        self.spread(rest)
        for _ in range(self.chance.randrange(9)):
            self.step()
        ids = self.newcomer(rest)
        self.spread(ids)
        return ids

    def fail(self, task: str) -> None:
        """Its query fails once and is started again by its worker."""
        owner, token, _ = self.owner(task)
        if owner is not None:
            self.report(owner, task, token, TaskState.RESTARTING, cause="the broker went away")

    def take_over(self) -> None:
        """Another manager has the group."""
        self.crash()
        self.coordinator.use_alarms(self.book, self.instant)


@pytest.mark.parametrize("seed", range(3))
def test_an_ordinary_hour_rings_nothing(seed: int) -> None:
    """Rebalances, single failures, a rolling upgrade of workers every ten minutes, and of managers."""
    herd = Herd(seed)
    herd.create(*TASKS)
    ids = herd.newcomer([])
    herd.spread(ids)
    for _ in range(2):
        ids = herd.newcomer(ids)
        herd.spread(ids)
    end = herd.now + 60 * MINUTE
    steps = 0
    while herd.now < end:
        herd.step()
        steps += 1
        if steps % 15 == 0:
            herd.chance.shuffle(ids)
            herd.spread(ids)
        if steps % 20 == 7:
            herd.fail(herd.chance.choice(TASKS))
        if steps % 60 == 30:
            for _ in range(3):
                ids = herd.replace(ids)
        if steps % 45 == 44:
            herd.take_over()
    assert [event.alarm for event in herd.told if event.alarm is not None] == []
    assert min(herd.batches.values()) > steps // 2


def test_the_same_hour_would_ring() -> None:
    """With less patience: the test above would see it."""
    herd = Herd(1)
    hasty = [rule for rule in DEFAULT_RULES if rule.name == "lag"]
    patience = {"threshold": 1, "clear_threshold": None, "for_ms": 0}
    herd.book = AlarmBook(tuple(msgspec.structs.replace(rule, **patience) for rule in hasty))
    herd.coordinator.use_alarms(herd.book, herd.instant)
    herd.create(*TASKS)
    herd.spread(herd.newcomer([]))
    for _ in range(10):
        herd.step()
    assert [event.type for event in herd.told if event.alarm is not None][:1] == ["alarm.firing"]
