"""What comes between the slices of a pass: groups that go, clocks that are set, managers that freeze."""

from __future__ import annotations

from typing import Any

import pytest

from manager.core.alarms.book import AlarmBook
from manager.core.commands import DeleteGroup, DeleteTask, ListAlarms
from manager.core.tasks import alarm_watch
from manager.core.tasks.alarm_watch import EVERY_MS, SETTLE_MS
from protocol.alarm_kinds import AlarmKind
from protocol.messages.base import NO_GENERATION, encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, DeleteOffsetsRequest, OffsetToCommit
from tests.unit.manager.core.alarms.looks import MINUTE, behind, rule
from tests.unit.manager.core.alarms.watched import LAG, Watched

HOUR = 60 * MINUTE


@pytest.fixture
def bench() -> Watched:
    return Watched()


def _until_rows(bench: Watched) -> None:
    """Stop between two turns that store what one pass has found."""
    while not bench.rows:
        bench.pass_time(1)


@pytest.mark.parametrize("how", ["its tasks", "the group"])
def test_a_group_that_goes_while_alarms_are_stored_leaves_none(
    bench: Watched, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What was found and not stored yet is neither told nor stored after that."""
    monkeypatch.setattr(alarm_watch, "ROWS_AT_ONCE", 1)
    bench.use(rule(AlarmKind.UNASSIGNED))
    if how == "the group":
        member_id = bench.begin("a", "b", "c")
        bench.leave((member_id, None))
    else:
        bench.create("a", "b", "c")
    _until_rows(bench)
    if how == "the group":
        assert bench.ask(DeleteGroup()).error == "NONE"
    else:
        for task in ("a", "b", "c"):
            bench.ask(DeleteTask(task=task))
    bench.pass_time(HOUR)
    assert bench.rows == []
    told = [event.type for event in bench.told if event.alarm]
    assert told == ["alarm.firing", "alarm.resolved"]


def test_a_group_whose_last_piece_are_offsets_leaves_no_alarms(bench: Watched) -> None:
    """Its task goes first, and its alarm is yet to be looked at when there is no group any more."""
    bench.use(rule(AlarmKind.UNASSIGNED))
    bench.create("a")
    kept = {"x": OffsetToCommit(offset=encode_opaque(1))}
    bench.ask(CommitOffsetsRequest(member_id="", generation_id=NO_GENERATION, offsets=kept))
    assert len(bench.look()) == 1
    bench.ask(DeleteTask(task="a"))
    assert bench.ask(DeleteOffsetsRequest(keys=("x",))).error == "NONE"
    bench.pass_time(HOUR)
    assert bench.rows == []
    assert [event.type for event in bench.told if event.alarm] == ["alarm.firing", "alarm.resolved"]


def test_a_clock_that_was_set_back_rings_no_alarm_twice(bench: Watched) -> None:
    """One that fires may have begun before one that is over by now, as far as their times say."""
    bench.use(LAG)
    bench.begin("a")
    for rows in (101, 0):
        bench.runs("a", lag=behind(rows))
        assert len(bench.look()) == 1
    bench.wall -= HOUR
    bench.runs("a", lag=behind(101))
    assert len(bench.look()) == 1
    bench.store = dict(reversed(bench.store.items()))  # rows are read in any order
    bench.take_over()
    bench.runs("a", lag=behind(101))
    assert bench.look(10 * MINUTE) == []
    bench.runs("a", lag=behind(0))
    assert [event.type for event in bench.look()] == ["alarm.resolved"]


def test_what_fired_is_repeated_though_the_clock_was_set_back(bench: Watched) -> None:
    """It is told when it is time by either way of the clock."""
    bench.use(rule(threshold=100, repeat_every_ms=10 * MINUTE))
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert len(bench.look()) == 1
    bench.wall -= 48 * HOUR
    assert len(bench.look(9 * MINUTE)) == 1


def test_figures_of_alarms_that_are_over_are_forgotten(bench: Watched) -> None:
    """Members and tasks come and go for weeks."""
    bench.use(LAG)
    bench.begin("a", "b")
    bench.runs("a", lag=behind(101))
    bench.runs("b", lag=behind(101))
    bench.look()
    bench.runs("a", lag=behind(0))
    bench.ask(DeleteTask(task="b"))
    bench.look(5 * MINUTE)
    assert bench.group.alarms.values == {}


def test_a_manager_that_was_frozen_tells_of_nothing_it_has_not_seen(bench: Watched) -> None:
    """Its workers have run on meanwhile; what they told last is old, however long ago."""
    bench.use(rule(AlarmKind.STUCK, threshold=600), rule(threshold=100, for_ms=5 * MINUTE))
    bench.begin("a")
    bench.runs("a", lag=behind(1000))
    assert bench.look() == []
    bench.now += 12 * MINUTE
    assert bench.look(SETTLE_MS - EVERY_MS) == []
    bench.runs("a", lag=behind(1000))
    assert [event.alarm.rule for event in bench.look(6 * MINUTE) if event.alarm] == ["lag_rows"]


def test_only_alarms_that_are_told_are_compared_with_silences(
    bench: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that fires, by all silences, took minutes in which nobody else was answered."""
    names = [f"t{number:03}" for number in range(50)]
    bench.use(rule(AlarmKind.UNASSIGNED))
    bench.create(*names)
    bench.look()
    compared: list[str | None] = []

    def is_silenced(_: AlarmBook, *about: Any) -> bool:
        compared.append(about[2])
        return False

    monkeypatch.setattr(AlarmBook, "is_silenced", is_silenced)
    answer = bench.ask(ListAlarms(past=0, limit=3)).answer
    assert (answer.total, len(answer.alarms)) == (50, 3)
    assert sorted(map(str, compared)) == [alarm.task for alarm in answer.alarms]
