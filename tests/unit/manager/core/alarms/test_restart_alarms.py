"""Tasks that are restarted too often: what is counted, and by whom."""

from __future__ import annotations

import msgspec
import pytest

from manager.core.commands import DeleteTask
from manager.core.stored_rows import OwnershipRow
from manager.core.tasks.alarm_watch import EVERY_MS, SETTLE_MS
from protocol.alarm_kinds import AlarmKind
from protocol.states import TaskState
from tests.unit.manager.core.alarms.looks import MINUTE, rule
from tests.unit.manager.core.alarms.watched import Watched


@pytest.fixture
def bench() -> Watched:
    return Watched()


def restart(bench: Watched, task: str, number: int) -> None:
    """Its query fails and is started again; each of both ways to say so is the same restart."""
    bench.runs(task, TaskState.RESTARTING, cause=f"failure {number}")
    bench.runs(task, TaskState.RESTARTING, cause=f"failure {number}, in more words")
    bench.runs(task)


def test_each_way_into_restarting_is_one(bench: Watched) -> None:
    """However many reports say so."""
    bench.use(rule(AlarmKind.RESTARTING, threshold=2, window_ms=10 * MINUTE))
    bench.begin("a")
    for number in range(3):
        assert bench.look() == []
        restart(bench, "a", number)
    (event,) = bench.look()
    assert event.alarm is not None
    assert event.alarm.subjects[0].causes[0] == "failure 2, in more words"
    assert [event.type for event in bench.look(11 * MINUTE)] == ["alarm.resolved"]


def test_more_restarts_are_counted_than_a_history_has_lines(bench: Watched) -> None:
    """A rule of a hundred rings after a hundred and not before, whoever had the group meanwhile."""
    bench.use(rule(AlarmKind.RESTARTING, threshold=100, window_ms=60 * MINUTE))
    bench.begin("a")
    for number in range(100):
        restart(bench, "a", number)
    assert bench.look() == []
    bench.take_over()
    restart(bench, "a", 101)
    (event,) = bench.look(SETTLE_MS + EVERY_MS)
    assert event.alarm is not None
    assert event.alarm.subjects[0].value == 101


def test_restarts_before_a_takeover_end_with_their_window(bench: Watched) -> None:
    """The next manager knows all there were, so it need not look for a window before it says so."""
    bench.use(rule(AlarmKind.RESTARTING, threshold=2, window_ms=60 * MINUTE))
    bench.begin("a")
    for number in range(3):
        restart(bench, "a", number)
    assert len(bench.look()) == 1
    bench.look(40 * MINUTE)
    bench.take_over()
    assert bench.look(10 * MINUTE) == []
    assert [event.type for event in bench.look(12 * MINUTE)] == ["alarm.resolved"]


def test_of_rows_without_counts_nothing_is_taken_for_no_restarts(bench: Watched) -> None:
    """A manager of an earlier version has told of an alarm: it is not over as this one counted none."""
    bench.use(rule(AlarmKind.RESTARTING, threshold=2, window_ms=60 * MINUTE))
    bench.begin("a")
    for number in range(3):
        restart(bench, "a", number)
    assert len(bench.look()) == 1
    for key, row in bench.store.items():
        if isinstance(row, OwnershipRow):
            bench.store[key] = msgspec.structs.replace(row, restarts=None)
    bench.take_over()
    assert bench.look(50 * MINUTE) == []
    assert [event.type for event in bench.look(12 * MINUTE)] == ["alarm.resolved"]


def test_a_task_that_is_created_anew_has_not_been_restarted(bench: Watched) -> None:
    """A later one of its name is another one."""
    bench.use(rule(AlarmKind.RESTARTING, threshold=2))
    bench.begin("a")
    for number in range(2):
        restart(bench, "a", number)
    bench.ask(DeleteTask(task="a"))
    bench.create("a")
    assert bench.group.tasks.ownership["a"].restarts == b""
