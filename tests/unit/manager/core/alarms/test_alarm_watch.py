"""A group that is looked at: what is told, what is stored, and what a takeover makes of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from manager.core.alarms import alarms, book, globs
from manager.core.alarms.book import AlarmBook
from manager.core.alarms.findings import SUBJECTS_TOLD
from manager.core.commands import AcknowledgeAlarms, DeleteGroup, DeleteTask, SetTarget
from manager.core.stored_rows import AlarmRow
from manager.core.tasks import alarm_watch
from manager.core.tasks.alarm_watch import EVERY_MS, SETTLE_MS
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarms import Silence
from protocol.messages.ownership import ReportRequest
from protocol.messages.resources import WorkerResources
from protocol.states import Target
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, behind, rule
from tests.unit.manager.core.alarms.watched import LAG, SLICES_MS, Watched

if TYPE_CHECKING:
    from protocol.messages.alarms import AlarmRule

PAST_KEPT_HERE = 50


@pytest.fixture
def bench() -> Watched:
    return Watched()


def test_an_alarm_fires_once_and_is_resolved_once(bench: Watched) -> None:
    """The event has what the rule says, and what is known of the task."""
    bench.use(LAG)
    member_id = bench.begin("a", "b")
    bench.runs("a", lag=behind(101))
    (event,) = bench.look()
    notice = event.alarm
    assert notice is not None
    assert (event.type, notice.rule, notice.kind, notice.receivers) == (
        "alarm.firing",
        "lag_rows",
        "lag_rows",
        ("ops",),
    )
    (subject,) = notice.subjects
    assert (subject.task, subject.worker, subject.value, subject.threshold) == ("a", member_id, 101, 100)
    assert bench.look(5 * MINUTE) == []
    bench.runs("a", lag=behind(100))
    (over,) = bench.look()
    assert over.type == "alarm.resolved"
    assert bench.look(5 * MINUTE) == []
    assert [row.resolved_at_ms > row.fired_at_ms for row in bench.rows] == [True]


def made_anew(bench: Watched, task: str) -> None:
    """The task is deleted, and another one of its name is created and run by the same worker, at once."""
    owner, token, _ = bench.owner(task)
    assert bench.ask(DeleteTask(task=task)).error == "NONE"
    assert bench.report(str(owner), task, token) == "UNKNOWN_TASK"
    bench.create(task)
    bench.pass_time(100)
    bench.join(str(owner), kind="sparkherd", session_ms=10**9)
    bench.deal([str(owner)], {task: str(owner)})
    bench.claim(str(owner), task)


def test_what_fires_of_a_task_ends_with_it_though_another_one_has_its_name(bench: Watched) -> None:
    """Nothing is known of the lag of the new one yet, which has nothing to do with what was told."""
    bench.use(LAG)
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert [event.type for event in bench.look()] == ["alarm.firing"]
    made_anew(bench, "a")
    assert [event.type for event in bench.look()] == ["alarm.resolved"]
    bench.runs("a", lag=behind(101))
    assert [event.type for event in bench.look(2 * EVERY_MS + SLICES_MS)] == ["alarm.firing"]


def test_how_long_a_task_was_behind_says_nothing_of_a_later_one_of_its_name(bench: Watched) -> None:
    """Its patience is its own."""
    bench.use(rule(threshold=100, for_ms=4 * MINUTE))
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert bench.look(3 * MINUTE) == []
    made_anew(bench, "a")
    bench.runs("a", lag=behind(101))
    assert bench.look(3 * MINUTE) == []
    bench.runs("a", lag=behind(101))
    assert [event.type for event in bench.look(2 * MINUTE)] == ["alarm.firing"]


def test_without_rules_nothing_is_looked_at(bench: Watched) -> None:
    """Nor is there a deadline for it."""
    bench.begin("a")
    assert ("alarms", "") not in bench.group.timers
    bench.use(rule(threshold=1, groups="other"))
    assert ("alarms", "") not in bench.group.timers


def test_a_slice_has_fewer_tasks_where_there_are_many_rules(
    bench: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared with each task once, and that holds up nobody; later passes need not."""
    compared: dict[int, int] = Counter()

    def for_task(rules: tuple[AlarmRule, ...], *named: Any) -> tuple[AlarmRule, ...]:
        compared[bench.now] += len(rules)
        return book.for_task(rules, *named)

    monkeypatch.setattr(alarm_watch, "for_task", for_task)
    bench.begin(*(f"t{number:03}" for number in range(90)))
    bench.use(*(rule(threshold=1, name=f"r{number}", tasks=f"x{number}-*") for number in range(500)))
    bench.look()
    assert max(compared.values()) < 6000
    assert sum(compared.values()) == 90 * 500
    compared.clear()
    bench.look()
    assert compared == {}


def test_many_alarms_of_a_rule_are_one_notice(bench: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them one by one, the count of all, and a row of each."""
    monkeypatch.setattr(alarm_watch, "TASKS_AT_ONCE", 30)
    monkeypatch.setattr(alarm_watch, "ROWS_AT_ONCE", 40)
    names = [f"t{number:04}" for number in range(90)]
    bench.use(LAG)
    bench.begin(*names)
    for name in names:
        bench.runs(name, lag=behind(500))
    (event,) = bench.look()
    assert event.alarm is not None
    assert (event.alarm.count, len(event.alarm.subjects)) == (len(names), SUBJECTS_TOLD)
    assert len(bench.rows) == len(names)
    for name in names:
        bench.runs(name, lag=behind(0))
    monkeypatch.setattr(alarms, "PAST_KEPT", PAST_KEPT_HERE)
    (over,) = bench.look()
    assert over.alarm is not None
    assert over.alarm.count == len(names)
    assert len(bench.rows) == PAST_KEPT_HERE


def test_a_takeover_neither_rings_again_nor_resolves(bench: Watched) -> None:
    """What was told by reports is unknown to the new manager until they come again."""
    bench.use(LAG)
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert len(bench.look()) == 1
    bench.take_over()
    assert bench.look(10 * MINUTE) == []
    bench.runs("a", lag=behind(105))
    assert bench.look(10 * MINUTE) == []
    bench.runs("a", lag=behind(5))
    (over,) = bench.look()
    assert over.type == "alarm.resolved"


def test_patience_outlives_a_takeover_where_the_state_is_stored(bench: Watched) -> None:
    """A task that is nobody's was that before, too; but the new manager lets its workers come back first."""
    bench.use(rule(AlarmKind.UNASSIGNED, for_ms=5 * MINUTE))
    bench.begin("a")
    owner, token, _ = bench.owner("a")
    bench.release(str(owner), a=token)
    assert bench.look(4 * MINUTE) == []
    bench.take_over()
    assert bench.look(SETTLE_MS - EVERY_MS) == []
    assert len(bench.look(2 * EVERY_MS)) == 1


def test_nothing_fires_before_the_workers_are_back(bench: Watched) -> None:
    """However long it was so before the takeover."""
    bench.use(rule(AlarmKind.UNASSIGNED))
    bench.create("a")
    bench.take_over()
    assert bench.look(SETTLE_MS - 1) == []
    assert len(bench.look(EVERY_MS)) == 1


def test_a_silence_keeps_an_alarm_from_being_told(bench: Watched) -> None:
    """It fires all the same, and is told when the silence ends."""
    silence = Silence(
        id="s",
        ends_at_ms=WALL + bench.now + 5 * MINUTE,
        reason="upgrade",
        by="ann",
        created_at_ms=0,
        tasks="a",
    )
    bench.use(LAG, silences=(silence,))
    bench.begin("a", "b")
    bench.runs("a", lag=behind(101))
    assert bench.look(4 * MINUTE) == []
    assert [row.told_at_ms for row in bench.rows] == [0]
    (event,) = bench.look(2 * MINUTE)
    assert event.alarm is not None
    assert not event.alarm.is_repeat
    bench.runs("b", lag=behind(101))
    assert len(bench.look()) == 1


def test_the_end_of_what_nobody_was_told_of_is_not_told(bench: Watched) -> None:
    """A silence longer than the alarm hides both."""
    silence = Silence(id="s", ends_at_ms=2 * WALL, reason="upgrade", by="ann", created_at_ms=0)
    bench.use(LAG, silences=(silence,))
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    bench.look()
    bench.runs("a", lag=behind(0))
    assert bench.look() == []
    assert [bool(row.resolved_at_ms) for row in bench.rows] == [True]


def test_an_alarm_that_goes_on_is_told_again(bench: Watched) -> None:
    """As often as its rule says, and as a repeat."""
    bench.use(rule(threshold=100, repeat_every_ms=10 * MINUTE))
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert len(bench.look()) == 1
    assert bench.look(9 * MINUTE) == []
    (again,) = bench.look(MINUTE + EVERY_MS)
    assert again.alarm is not None
    assert again.alarm.is_repeat
    bench.take_over()
    bench.runs("a", lag=behind(101))
    assert bench.look(9 * MINUTE) == []


def test_what_somebody_has_acknowledged_is_not_told_again(bench: Watched) -> None:
    """Its end is, for whoever was told that it began."""
    bench.use(rule(threshold=100, repeat_every_ms=10 * MINUTE))
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    assert len(bench.look()) == 1
    bench.ask(AcknowledgeAlarms(rule=LAG.name, by="ann"))
    assert bench.look(30 * MINUTE) == []
    bench.runs("a", lag=behind(1))
    assert [event.type for event in bench.look()] == ["alarm.resolved"]


def test_who_acknowledges_an_alarm_while_the_group_is_looked_at_is_not_forgotten(
    bench: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass has the row as it was before, and stores it after that; the first one who did stays."""
    monkeypatch.setattr(alarm_watch, "TASKS_AT_ONCE", 1)
    bench.use(LAG)
    bench.begin("a", "b")
    bench.runs("a", lag=behind(101))
    bench.look()
    bench.runs("a", lag=behind(1))
    group = bench.coordinator.group("g")
    assert group is not None
    for _ in range(EVERY_MS):
        if group.alarms.under_way is None:
            bench.pass_time(1)
    assert group.alarms.under_way is not None
    bench.ask(AcknowledgeAlarms(rule=LAG.name, by="ann"))
    bench.ask(AcknowledgeAlarms(rule=LAG.name, by="bob"))
    bench.look()
    assert [(row.acknowledged_by, bool(row.resolved_at_ms)) for row in bench.rows] == [("ann", True)]


def test_of_those_that_are_over_the_oldest_are_forgotten() -> None:
    """By when they ended, whichever came first."""
    kept = alarms.GroupAlarms()
    over: dict[str, Any] = {"group": "g", "rule": "r", "kind": "failed", "severity": "info", "since_ms": 0}
    for at in range(1, alarms.PAST_KEPT + 3):
        kept.keep(AlarmRow(subject=f"task:{at}", fired_at_ms=1000 - at, resolved_at_ms=1000 + at, **over))
    assert [row.resolved_at_ms for row in kept.surplus()] == [1001, 1002]


def test_a_silence_of_some_tasks_is_none_of_workers() -> None:
    """Whoever silences a task has not thought of the worker that it is on."""
    common: dict[str, Any] = {"id": "s", "ends_at_ms": 2, "reason": "r", "by": "ann", "created_at_ms": 0}
    of_tasks = AlarmBook(silences=(Silence(tasks="a*", **common),))
    assert [of_tasks.is_silenced("r", "g", task, 1) for task in ("a1", "b", None)] == [True, False, False]
    assert AlarmBook(silences=(Silence(**common),)).is_silenced("r", "g", None, 1)


def test_of_all_silences_those_of_a_rule_and_group_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand alarms of it are each compared with these only."""
    compared: list[str] = []

    def fits(pattern: str, name: str) -> bool:
        compared.append(pattern)
        return globs.fits(pattern, name)

    monkeypatch.setattr(book, "fits", fits)
    common: dict[str, Any] = {"id": "s", "ends_at_ms": 2, "reason": "r", "by": "ann", "created_at_ms": 0}
    others = (Silence(rules=f"x{number}", tasks="a", **common) for number in range(50))
    silences = AlarmBook(silences=(*others, Silence(groups="g", tasks="t*", **common)))
    assert [silences.is_silenced("r", "g", task, 1) for task in ("t1", "b")] == [True, False]
    assert not silences.is_silenced("r", "g", "t1", 2)
    assert sum(pattern in {"a", "t*"} for pattern in compared) == 2
    assert sum(pattern.startswith("x") for pattern in compared) == 50


@pytest.mark.parametrize("how", ["rule", "task", "target"])
def test_what_no_rule_is_about_any_more_is_resolved(bench: Watched, how: str) -> None:
    """Its rule is gone, its task is gone, or it is not to run any more."""
    bench.use(LAG)
    bench.begin("a", "b")
    bench.runs("a", lag=behind(101))
    bench.look()
    if how == "rule":
        bench.use()
    elif how == "task":
        bench.ask(DeleteTask(task="a"))
    else:
        bench.ask(SetTarget(task="a", target=Target.PAUSED))
    assert [event.type for event in bench.look()] == ["alarm.resolved"]


def test_what_fires_by_a_rule_that_cannot_be_read_goes_on(bench: Watched) -> None:
    """A newer manager has told of it, and will tell of its end; this one knows nothing of it."""
    bench.use(LAG)
    bench.begin("a")
    bench.runs("a", lag=behind(101))
    bench.look()
    bench.book = AlarmBook(unread=frozenset({LAG.name}))
    bench.take_over()
    assert bench.look(10 * MINUTE) == []
    bench.use()
    assert [event.type for event in bench.look()] == ["alarm.resolved"]


def test_the_last_rule_that_fits_counts(bench: Watched) -> None:
    """An exception takes the place of the default; one that is switched off is none at all."""
    bench.use(
        rule(threshold=100, name="default"),
        rule(threshold=1000, name="big", tasks="b*"),
        rule(threshold=0, name="off", tasks="c*", enabled=False),
    )
    bench.begin("a", "b", "c")
    for task in ("a", "b", "c"):
        bench.runs(task, lag=behind(500))
    (event,) = bench.look()
    assert event.alarm is not None
    assert (event.alarm.rule, [each.task for each in event.alarm.subjects]) == ("default", ["a"])


def test_labels_tell_tasks_apart(bench: Watched) -> None:
    """All that a rule names have to be there, and fit."""
    bench.use(rule(threshold=100, labels={"team": "fl*"}))
    bench.begin("a")
    bench.runs("a", lag=behind(500))
    assert bench.look() == []


def test_a_worker_is_told_of_by_its_id(bench: Watched) -> None:
    """Its tasks together are more than it has capacity for."""
    bench.use(rule(AlarmKind.WORKER_OVERLOADED, threshold=1), rule(AlarmKind.WORKER_HEAP, threshold=80))
    member_id = bench.begin("a", "b")
    bench.runs("a", metrics={"load": 0.7})
    bench.runs("b", metrics={"load": 0.7})
    full = WorkerResources(heap_max_bytes=100, heap_after_gc_bytes=81)
    bench.ask(ReportRequest(member_id=member_id, tasks=(), resources=full))
    told = [event.alarm for event in bench.look()]
    assert [(notice.rule, notice.subjects[0].member) for notice in told if notice is not None] == [
        ("worker_overloaded", member_id),
        ("worker_heap", member_id),
    ]


def test_a_group_that_ends_with_its_last_task_ends_its_alarms(bench: Watched) -> None:
    """It never had a member, so nothing is left of it; whoever was told hears of that."""
    bench.use(rule(AlarmKind.UNASSIGNED))
    bench.create("a")
    assert len(bench.look()) == 1
    before = len(bench.told)
    bench.ask(DeleteTask(task="a"))
    assert [event.type for event in bench.told[before:] if event.alarm] == ["alarm.resolved"]
    assert bench.rows == []


def test_a_group_that_is_deleted_ends_its_alarms(bench: Watched) -> None:
    """Those of its tasks, which go with it."""
    bench.use(rule(AlarmKind.UNASSIGNED))
    member_id = bench.begin("a")
    bench.leave((member_id, None))
    assert len(bench.look()) == 1
    assert bench.ask(DeleteGroup()).error == "NONE"
    assert bench.told[-1].type == "group.deleted"
    assert [event.type for event in bench.told if event.alarm] == ["alarm.firing", "alarm.resolved"]
    assert bench.rows == []
