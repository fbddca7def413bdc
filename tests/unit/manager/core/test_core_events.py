"""What the core tells the outside; the tables have what every request tells in every state."""

from __future__ import annotations

from typing import Any

from manager.core.commands import SetTarget
from manager.core.turn import MAX_CAUSE_LENGTH
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import SESSION_MS, WALL, Bench


def told(bench: Bench, kind: str) -> list[Any]:
    return [event for event in bench.told if event.type == kind]


def kinds(bench: Bench) -> list[str]:
    return [event.type for event in bench.told]


def test_a_rebalance_is_told_when_its_assignment_is_there_with_what_the_history_says(bench: Bench) -> None:
    """Not when a generation is handed out; and the one that another overtook is never told."""
    bench.create("t")
    ids = bench.worker_group(2)
    assert told(bench, "rebalance.completed") == []
    bench.deal(ids, {"t": ids[0]})
    (event,) = told(bench, "rebalance.completed")
    line = bench.group.rebalances[-1]
    assert (event.group, event.generation_id, event.members, event.cause) == ("g", 2, 2, line.reason)
    assert event.at_ms == WALL + bench.now
    assert [row.generation_id for row in bench.group.rebalances] == [1, 2]


def test_a_lost_worker_is_told_with_what_it_ran(bench: Bench) -> None:
    """Silence, not leaving, is loss."""
    ids = bench.herd(1, "t", "u")
    bench.pass_time(SESSION_MS)
    (event,) = told(bench, "worker.lost")
    assert (event.member, event.generation_id, event.tasks) == (ids[0], 1, 2)
    assert "session" in event.cause
    assert kinds(bench)[-2:] == ["worker.lost", "rebalance.completed"]


def test_who_leaves_is_not_lost(bench: Bench) -> None:
    """Only the rebalance into the empty group is told."""
    ids = bench.stable(None)
    bench.leave((ids[0], None))
    assert kinds(bench) == ["rebalance.completed", "rebalance.completed"]


def test_a_failure_is_told_once_with_its_cause_cut(bench: Bench) -> None:
    """Reports repeat, the event does not; the status keeps the whole trace."""
    ids = bench.herd(1, "t")
    trace = "no such path " * 1000
    for _ in range(2):
        bench.report(ids[0], "t", 1, TaskState.FAILED, cause=trace)
    (event,) = told(bench, "task.failed")
    assert (event.task, event.member, event.cause) == ("t", ids[0], trace[:MAX_CAUSE_LENGTH])
    assert bench.group.tasks.ownership["t"].cause == trace


def test_a_task_that_has_failed_already_is_not_told_again(bench: Bench) -> None:
    """Not with another cause, nor when its owner goes; the next owner's failure is another one."""
    ids = bench.herd(2, "t")
    owner = str(bench.owner("t")[0])
    for cause in ("no such path", "no such path, at another time"):
        bench.report(owner, "t", 1, TaskState.FAILED, cause=cause)
    bench.leave((owner, None))
    assert len(told(bench, "task.failed")) == 1
    heir = next(member for member in ids if member != owner)
    bench.rejoin([heir], kind="sparkherd")
    bench.deal([heir], {"t": heir})
    bench.claim(heir, "t")
    bench.report(heir, "t", 2, TaskState.FAILED, cause="no such path")
    assert [event.member for event in told(bench, "task.failed")] == [owner, heir]


def test_what_goes_on_is_not_told(bench: Bench) -> None:
    """Heartbeats, claims, batches and states that pass are nobody's business outside."""
    ids = bench.herd(1, "t")
    before = list(bench.told)
    bench.heartbeat(ids[0])
    for state in (TaskState.STARTING, TaskState.RUNNING, TaskState.RESTARTING, TaskState.RUNNING):
        bench.report(ids[0], "t", 1, state, batch_id=3)
    assert bench.told == before


def test_a_stop_is_told_when_it_was_asked_for_and_when_it_is_done(bench: Bench) -> None:
    """The owner's report makes it so; a target alone is a change of the task."""
    ids = bench.herd(1, "t")
    bench.told.clear()
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    assert [(e.type, e.target) for e in bench.told] == [("task.changed", "STOPPED")]
    bench.report(ids[0], "t", 1, TaskState.STOPPED)
    assert (bench.told[-1].type, bench.told[-1].member) == ("task.stopped", ids[0])


def test_a_query_that_came_to_its_end_is_told(bench: Bench) -> None:
    """COMPLETED."""
    ids = bench.herd(1, "t")
    bench.report(ids[0], "t", 1, TaskState.COMPLETED)
    assert kinds(bench)[-1] == "task.completed"


def test_a_group_that_is_forgotten_by_itself_is_told() -> None:
    """After its retention."""
    bench = Bench(group_retention_ms=5000)
    ids = bench.stable(None)
    bench.leave((ids[0], None))
    bench.pass_time(5000)
    assert (bench.told[-1].type, bench.told[-1].group) == ("group.deleted", "g")


def test_a_reload_tells_nothing_again(bench: Bench) -> None:
    """What was told is in the storage already."""
    bench.herd(2, "t", "u")
    before = list(bench.told)
    bench.crash()
    assert bench.told == before
