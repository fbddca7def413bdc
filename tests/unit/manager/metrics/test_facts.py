from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from manager.core.alarms.book import AlarmBook
from manager.core.commands import DeleteGroup, DeleteTask, DrainMember, RemoveMember, StartRebalance
from manager.core.tasks.alarm_watch import EVERY_MS
from manager.core.transfer_commands import CancelTransfer, StartTransfer
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import AlarmRule
from protocol.states import TaskState
from tests.unit.manager.core.bench import SESSION_MS
from tests.unit.manager.metrics.watched import WatchedBench

if TYPE_CHECKING:
    from collections.abc import Callable

REBALANCES = "sparkherd_rebalances_total"
GONE = "sparkherd_members_gone_total"


def settle(bench: WatchedBench, ids: list[str]) -> None:
    """Everybody who is left comes together again."""
    bench.rejoin(ids, kind="sparkherd")
    bench.settle(ids, {})


def two_members_and(bench: WatchedBench, event: Callable[[list[str]], object]) -> dict[str, float]:
    """The causes of the rebalances that `event` leads to, of two members of which the second may go."""
    ids = bench.worker_group(2)
    bench.settle(ids, {})
    before = bench.series(REBALANCES)
    event(ids)
    settle(bench, [member for member in ids if member in bench.group.members])
    after = bench.series(REBALANCES)
    return {cause: n - before.get(cause, 0) for cause, n in after.items() if n != before.get(cause, 0)}


def stay_silent(bench: WatchedBench, ids: list[str]) -> None:
    """The second member's session ends, the first one's does not."""
    bench.pass_time(SESSION_MS // 2)
    bench.heartbeat(ids[0])
    bench.pass_time(SESSION_MS // 2)


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (lambda b, ids: b.leave((ids[1], None)), "leave"),
        (lambda b, ids: b.ask(RemoveMember(member_id=ids[1])), "removed"),
        (lambda b, _: b.ask(StartRebalance(reason="joins")), "admin"),
        (lambda b, ids: b.ask(DrainMember(member_id=ids[1], draining=True)), "drain"),
        (lambda b, ids: b.join(ids[0], kind="sparkherd", metadata={"owned": {}}), "join"),
        (stay_silent, "lost"),
    ],
)
def test_a_rebalance_is_counted_by_what_it_began_with(
    event: Callable[[WatchedBench, list[str]], object], cause: str
) -> None:
    """Whatever words its reason has, and whichever request completes it."""
    bench = WatchedBench()
    assert two_members_and(bench, lambda ids: event(bench, ids)) == {cause: 1}


def test_more_of_what_was_to_move_is_a_cause_of_its_own() -> None:
    """It begins with a join as others do, but was decided before; a later join of the member is a join."""
    bench = WatchedBench()
    ids = bench.worker_group(2)
    bench.settle(ids, {ids[1]: {"tasks": [], "more": 1}})
    assert bench.value("sparkherd_group_tasks_to_come", group="g") == 1
    for words in ({"x": 1}, {"x": 2}):
        bench.join(ids[1], kind="sparkherd", metadata=words)
        bench.join(ids[0], kind="sparkherd")
        bench.settle(ids, {})
    assert bench.series(REBALANCES) == {"join": 3, "pace": 1}
    assert bench.value("sparkherd_group_tasks_to_come", group="g") == 0


def test_what_fires_is_counted_by_severity() -> None:
    """From when an alarm is stored until it is over."""
    bench = WatchedBench()
    rule = AlarmRule(name="unassigned", kind=AlarmKind.UNASSIGNED, severity=Severity.CRITICAL)
    bench.coordinator.use_alarms(AlarmBook((rule,)), bench.instant)
    bench.create("a", "b")
    firing = {"group": "g", "severity": "critical"}
    assert bench.value("sparkherd_group_alarms_firing", **firing) is None
    bench.pass_time(2 * EVERY_MS)
    assert bench.value("sparkherd_group_alarms_firing", **firing) == 2
    bench.ask(DeleteTask(task="a"))
    bench.pass_time(2 * EVERY_MS)
    assert bench.value("sparkherd_group_alarms_firing", **firing) == 1


def test_tasks_on_their_way_out_are_counted_by_step() -> None:
    """With the moment since when the one is at its step that is there longest; nothing when they stay."""
    bench = WatchedBench()
    bench.create("a", "b")
    begun_s = bench.instant.wall / 1000
    for task in ("a", "b"):
        bench.ask(StartTransfer(transfer=f"move-{task}", to_group="h", tasks={task: task}))
        bench.pass_time(60_000)
    assert bench.series("sparkherd_group_transferring_tasks") == {"STOPPED": 2}
    assert bench.value("sparkherd_group_transfer_step_since_seconds", group="g") == begun_s
    bench.ask(CancelTransfer(transfer="move-a", cause="no"))
    assert bench.value("sparkherd_group_transfer_step_since_seconds", group="g") == begun_s + 60
    bench.ask(CancelTransfer(transfer="move-b", cause="no"))
    assert bench.series("sparkherd_group_transferring_tasks") == {}
    assert bench.value("sparkherd_group_transfer_step_since_seconds", group="g") is None


def test_a_changed_set_of_tasks_is_a_cause_of_its_own() -> None:
    """It comes with a deadline, as a lost member does."""
    bench = WatchedBench()
    ids = bench.herd(1, "t1")
    bench.create("t2")
    bench.pass_time(2000)
    bench.redeal(ids, dict.fromkeys(("t1", "t2"), ids[0]))
    assert bench.value(REBALANCES, group="g", cause="tasks") == 1


def test_a_rebalance_that_a_crash_interrupts_is_another_one_afterwards() -> None:
    """What it began with before the crash is not known any more."""
    bench = WatchedBench()
    ids = bench.worker_group(2)
    bench.settle(ids, {})
    bench.ask(StartRebalance())
    bench.crash()
    settle(bench, ids)
    assert bench.series(REBALANCES) == {"join": 2, "restored": 1}


def test_durations_and_moves_come_from_the_history() -> None:
    """A rebalance of 5 s that moves one of two tasks."""
    bench = WatchedBench()
    ids = bench.herd(2, "t1", "t2")
    before = bench.value("sparkherd_rebalance_seconds_sum") or 0.0
    bench.ask(StartRebalance())
    bench.pass_time(5000)
    bench.redeal(ids, {"t1": ids[0], "t2": ids[0]})
    assert bench.value("sparkherd_rebalance_seconds_sum") == pytest.approx(before + 5.0)
    assert bench.value("sparkherd_tasks_moved_total", group="g") == 1


@pytest.mark.parametrize(
    ("event", "how"),
    [
        (lambda b, ids: b.leave((ids[1], None)), "left"),
        (lambda b, ids: b.ask(RemoveMember(member_id=ids[1])), "removed"),
        (stay_silent, "lost"),
    ],
)
def test_members_go_in_different_ways(event: Callable[[WatchedBench, list[str]], object], how: str) -> None:
    """Who left is no alarm, who was lost is one; the log names who it was."""
    bench = WatchedBench()
    ids = bench.stable(None, None)
    with capture_logs() as logs:
        event(bench, ids)
    assert bench.series(GONE) == {how: 1}
    line = next(entry for entry in logs if entry["event"] == "member gone")
    assert (line["group"], line["member"], line["how"], line["generation"]) == ("g", ids[1], how, 2)
    assert (line["log_level"] == "warning") == (how == "lost")


def test_a_static_member_that_comes_back_replaces_itself() -> None:
    """Nobody was lost."""
    bench = WatchedBench()
    bench.stable("a")
    bench.join(instance_id="a")
    assert bench.series(GONE) == {"replaced": 1}


def test_the_first_event_of_a_group_is_an_increase() -> None:
    """Every series of a group is there, at 0, before anything happens: else `increase` would miss it."""
    bench = WatchedBench()
    bench.join()
    bench.pass_time()
    assert bench.value(GONE, group="g", how="lost") == 0
    assert bench.value(REBALANCES, group="g", cause="lost") == 0


def test_a_group_that_was_taken_up_has_its_series_too() -> None:
    """A manager that has just started counts what happens next."""
    bench = WatchedBench()
    bench.stable(None)
    bench.watch = type(bench.watch)()
    bench.crash()
    assert bench.value(GONE, group="g", how="lost") == 0


def test_a_deleted_group_leaves_no_series_behind() -> None:
    """Groups that come and go must not fill Prometheus."""
    bench = WatchedBench()
    [member] = bench.stable(None)
    bench.leave((member, None))
    bench.ask(DeleteGroup())
    bench.coordinator.bury("g")
    left = [
        sample.name
        for metric in bench.watch.meter.instruments.registry.collect()
        for sample in metric.samples
        if "group" in sample.labels
    ]
    assert left == []


def test_a_task_that_fails_is_told_once_in_the_log() -> None:
    """With all that is known, and its cause in one line; its owner's going is no other failure."""
    bench = WatchedBench()
    [member] = bench.herd(1, "t1")
    with capture_logs() as logs:
        bench.report(member, "t1", 1, TaskState.FAILED, cause="no such path\n\ntrace")
        bench.leave((member, None))
    told = [entry for entry in logs if entry["event"] == "task failed"]
    assert [(t["task"], t["member"], t["token"], t["generation"], t["cause"]) for t in told] == [
        ("t1", member, 1, 1, "no such path")
    ]
