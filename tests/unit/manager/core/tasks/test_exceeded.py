"""Events of tasks that take more than their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.tasks.exceeded import EVERY_MS
from protocol.messages.events import EventType
from protocol.states import TaskState
from tests.unit.manager.core.bench import Bench, dealt

if TYPE_CHECKING:
    from protocol.messages.events import Event

CAUSE = "limits.batch_s: the batch under way has taken 31 s, more than 30"


@pytest.fixture
def herd() -> Herd:
    return Herd()


class Herd:
    """A worker with a task."""

    def __init__(self) -> None:
        self.bench = bench = Bench()
        bench.create("t")
        self.ids = bench.worker_group(1)
        bench.deal(self.ids, dealt(self.ids, ("t",)))
        bench.claim(self.ids[0], "t")

    def report(self, exceeded: Any, cause: str | None = CAUSE) -> None:
        """Its owner counts so."""
        token = self.bench.group.tasks.ownership["t"].token
        answer = self.bench.report(
            self.ids[0], "t", token, state=TaskState.RUNNING, cause=cause, metrics={"exceeded": exceeded}
        )
        assert answer == "NONE"

    def pass_time(self, ms: int) -> None:
        """With the heartbeats that keep everybody in."""
        for _ in range(ms // 5000):
            self.bench.heartbeat(self.ids[0])
            self.bench.pass_time(5000)

    @property
    def told(self) -> list[Event]:
        """Events of limits."""
        return [event for event in self.bench.told if event.type == EventType.TASK_LIMIT_EXCEEDED]


def test_an_event_says_which_limit_of_which_task_and_by_what_figure(herd: Herd) -> None:
    """Once, however often the same count is reported."""
    herd.report({"batch_s": 1})
    herd.report({"batch_s": 1})
    [event] = herd.told
    assert (event.task, event.member, event.generation_id) == ("t", herd.ids[0], herd.bench.group.generation)
    assert (event.reasons, event.cause) == ({"batch_s": 1}, CAUSE)


def test_there_is_one_a_minute_with_all_that_was_counted_meanwhile(herd: Herd) -> None:
    """A limit that is kept and broken in turn floods nobody."""
    herd.report({"batch_s": 1})
    herd.report({"batch_s": 5, "state_rows": 1})
    assert len(herd.told) == 1
    herd.pass_time(EVERY_MS)
    herd.report({"batch_s": 6, "state_rows": 1})
    assert [event.reasons for event in herd.told] == [{"batch_s": 1}, {"batch_s": 5, "state_rows": 1}]


@pytest.mark.parametrize("told", [None, 5, [], {"batch_s": "much"}, {"batch_s": -1}, {"made_up": 7}, {}])
def test_what_is_no_count_of_a_limit_is_no_news(herd: Herd, told: Any) -> None:
    """A worker may report anything."""
    herd.report(told)
    assert herd.told == []


def test_a_manager_that_takes_a_group_over_tells_only_what_comes_from_then_on(herd: Herd) -> None:
    """What it hears first may have been told by the manager before it."""
    herd.bench.group.tasks.progress.clear()
    herd.report({"batch_s": 3})
    assert herd.told == []
    herd.report({"batch_s": 4})
    assert [event.reasons for event in herd.told] == [{"batch_s": 1}]
