"""Events of rows that tasks put aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.aside import EVERY_MS
from manager.core.commands import DeleteTask
from protocol.messages.events import EventType
from protocol.states import TaskState
from tests.unit.manager.core.bench import Bench, dealt

if TYPE_CHECKING:
    from protocol.messages.events import Event

EXPECT = [
    {"name": "late", "where": "delay > 0", "on_violation": "quarantine"},
    {"name": "sane", "where": "delay < 9000", "on_violation": "drop"},
    {"name": "known", "where": "delay IS NOT NULL"},
]


@pytest.fixture
def herd() -> Herd:
    return Herd()


class Herd:
    """Two workers, of which the first has a task that may leave rows out."""

    def __init__(self) -> None:
        self.bench = bench = Bench()
        self.create()
        self.ids = bench.worker_group(2)
        bench.deal(self.ids, dealt(self.ids, ("t",)))
        bench.claim(self.ids[0], "t")

    def create(self) -> None:
        """The task."""
        self.bench.create("t", expect=EXPECT, on_error="quarantine")

    def report(self, batch_id: int, quarantined: int, owner: int = 0, **more: Any) -> None:
        """Its owner has put so many rows aside, all for the same reason, and dropped two."""
        metrics = {"dropped": 2, "quarantined": quarantined, "left_out": {"late": quarantined, "sane": 2}}
        token = self.bench.group.tasks.ownership["t"].token
        answer = self.bench.report(self.ids[owner], "t", token, batch_id=batch_id, metrics=metrics, **more)
        assert answer == "NONE"

    def pass_time(self, ms: int) -> None:
        """With the heartbeats that keep everybody in."""
        for _ in range(ms // 5000):
            for member_id in self.ids:
                self.bench.heartbeat(member_id)
            self.bench.pass_time(5000)

    @property
    def told(self) -> list[Event]:
        """Events of such rows."""
        return [event for event in self.bench.told if event.type == EventType.ROWS_QUARANTINED]


def test_an_event_says_whose_rows_how_many_and_what_for(herd: Herd) -> None:
    """And nothing of what is in them, or was dropped."""
    herd.report(0, 3)
    [event] = herd.told
    assert (event.task, event.member, event.generation_id) == ("t", herd.ids[0], herd.bench.group.generation)
    assert (event.rows, event.reasons, event.cause) == (3, {"late": 3}, None)


def test_there_is_one_a_minute_even_if_nothing_else_comes(herd: Herd) -> None:
    """The timer tells what has gathered, and nothing when there is nothing."""
    for batch_id in range(5):
        herd.report(batch_id, 10 * (batch_id + 1))
    assert [event.rows for event in herd.told] == [10]
    herd.pass_time(EVERY_MS)
    assert [event.rows for event in herd.told] == [10, 40]
    herd.pass_time(2 * EVERY_MS)
    assert len(herd.told) == 2


def test_the_last_rows_of_a_task_that_comes_to_its_end_are_told(herd: Herd) -> None:
    """When their minute is over; nobody has it then."""
    herd.report(0, 1)
    herd.report(1, 4, state=TaskState.COMPLETED)
    herd.pass_time(EVERY_MS)
    assert [(event.rows, event.member) for event in herd.told] == [(1, herd.ids[0]), (3, None)]


def test_the_next_owners_rows_are_all_news(herd: Herd) -> None:
    """Its count begins at 0 with its token, however many the one before had put aside."""
    herd.report(0, 3)
    herd.pass_time(EVERY_MS)
    bench, ids = herd.bench, herd.ids
    bench.redeal(ids, {"t": ids[1]})
    bench.release(ids[0], t=bench.group.tasks.ownership["t"].token)
    bench.claim(ids[1], "t")
    herd.report(1, 4, owner=1)
    assert [(event.rows, event.member) for event in herd.told] == [(3, ids[0]), (4, ids[1])]


def test_a_manager_that_takes_over_tells_nothing_again(herd: Herd) -> None:
    """It begins with the count that it hears first; with a new owner at 0."""
    herd.report(0, 3)
    herd.bench.crash()
    herd.report(1, 5)
    assert [event.rows for event in herd.told] == [3]
    herd.report(2, 6)
    assert [event.rows for event in herd.told] == [3, 1]


def test_what_was_to_be_told_of_a_deleted_task_is_not_told_of_its_successor(herd: Herd) -> None:
    """Nor does the timer find anything."""
    herd.report(0, 1)
    herd.report(1, 4)
    herd.bench.ask(DeleteTask(task="t"))
    herd.create()
    herd.pass_time(EVERY_MS)
    assert [event.rows for event in herd.told] == [1]


def test_a_zombies_rows_are_not_told(herd: Herd) -> None:
    """Its sink has refused them."""
    metrics = {"quarantined": 9}
    assert herd.bench.report(herd.ids[1], "t", 1, batch_id=1, metrics=metrics) == "STALE_TOKEN"
    assert herd.told == []
