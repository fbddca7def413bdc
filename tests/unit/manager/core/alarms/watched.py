"""A group that alarms are looked at in, on a fake clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core.alarms.book import AlarmBook
from manager.core.stored_rows import AlarmRow
from manager.core.tasks.alarm_watch import EVERY_MS
from protocol.states import TaskState
from tests.unit.manager.core.alarms.looks import WALL, rule
from tests.unit.manager.core.bench import Bench

if TYPE_CHECKING:
    from protocol.messages.alarms import AlarmRule, Silence
    from protocol.messages.events import Event

LAG = rule(threshold=100, receivers=("ops",))
SLICES_MS = 1000


class Watched(Bench):
    """A group of which events of alarms are kept; sessions are long, so that no heartbeats are needed."""

    def __init__(self) -> None:
        super().__init__(max_session_timeout_ms=10**9)
        self.wall = WALL
        self.book = AlarmBook()

    def use(self, *rules: AlarmRule, silences: tuple[Silence, ...] = ()) -> None:
        """Have these rules and silences."""
        self.book = AlarmBook(rules, silences)
        self.coordinator.use_alarms(self.book, self.instant)

    def begin(self, *tasks: str) -> str:
        """One worker with these tasks, all running; its id."""
        self.create(*tasks)
        ask = self.join(kind="sparkherd", session_ms=10**9)
        self.pass_time()
        member_id = str(ask.answer.member_id)
        self.deal([member_id], dict.fromkeys(tasks, member_id))
        self.claim(member_id, *tasks)
        for task in tasks:
            self.runs(task)
        return member_id

    def runs(self, task: str, state: TaskState = TaskState.RUNNING, **more: Any) -> None:
        """Its owner reports it."""
        owner, token, _ = self.owner(task)
        assert self.report(str(owner), task, token, state, **more) == "NONE"

    def look(self, ms: int = EVERY_MS + SLICES_MS) -> list[Event]:
        """Let a pass come to its end; what was told of alarms."""
        before = len(self.told)
        self.pass_time(ms)
        return [event for event in self.told[before:] if event.alarm is not None]

    def take_over(self) -> None:
        """Another manager has the group."""
        self.crash()
        self.coordinator.use_alarms(self.book, self.instant)

    @property
    def rows(self) -> list[AlarmRow]:
        """What is stored of alarms."""
        return [row for row in self.store.values() if isinstance(row, AlarmRow)]
