from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core.commands import (
    DeleteGroup,
    DeleteTask,
    GetTask,
    GetTaskStatus,
    NewDefinition,
    PutTask,
    RemoveMember,
    ResetTask,
    SetTarget,
)
from manager.core.stored_rows import OwnershipRow
from protocol.messages.tasks import TaskReset
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Ask, Bench


def stop(bench: Bench, worker: str, task: str = "t") -> None:
    """Stop `task`, as its owner does it."""
    bench.ask(SetTarget(task=task, target=Target.STOPPED))
    bench.report(worker, task, bench.owner(task)[1], TaskState.STOPPED)


def resume(bench: Bench, worker: str, task: str = "t") -> Any:
    """Have it run again by `worker`; returns what it was granted."""
    bench.ask(SetTarget(task=task, target=Target.RUNNING))
    bench.pass_time(1000)
    bench.redeal([worker], {task: worker})
    [granted] = bench.claim(worker, task).answer.granted
    return granted


def reset(bench: Bench, task: str = "t", **offsets: Any) -> Ask:
    return bench.ask(ResetTask(task=task, offsets=offsets)) if offsets else bench.ask(ResetTask(task=task))


def stopped(*tasks: str) -> tuple[Bench, str]:
    """A worker that has run and stopped the task `t`, under token 1."""
    bench = Bench()
    [worker] = bench.herd(1, "t", *tasks)
    bench.report(worker, "t", 1, batch_id=7, metrics={"rows": 3})
    stop(bench, worker)
    return bench, worker


def test_a_reset_task_is_granted_anew_under_a_higher_token() -> None:
    """The reset takes one token for itself, so that what is told of it fences all before it."""
    bench, worker = stopped()
    answer = reset(bench, startTimestamp=5).answer
    assert (answer.error, answer.task, answer.token) == ("NONE", "t", 2)
    assert answer.reset == TaskReset(2, {"startTimestamp": 5})
    assert bench.owner("t") == (None, 2, "STOPPED")
    granted = resume(bench, worker)
    assert (granted.token, granted.reset) == (3, TaskReset(2, {"startTimestamp": 5}))


def test_a_task_that_was_never_reset_is_granted_without(bench: Bench, worker: str) -> None:
    """And shown so."""
    assert bench.claim(worker, "t").answer.granted[0].reset is None
    assert bench.ask(GetTaskStatus(task="t")).answer.reset is None


@pytest.mark.parametrize("target", [Target.RUNNING, Target.PAUSED])
def test_only_a_stopped_task_is_reset(bench: Bench, target: Target) -> None:
    """INVALID_REQUEST, as Kafka Connect's 400, and nothing is changed; the message names the target."""
    bench.create("t", target=target)
    before = dict(bench.store)
    refused = reset(bench)
    assert refused.error == "INVALID_REQUEST"
    assert refused.answer.message.startswith(f"target: task t is to be {target.value}")
    assert bench.store == before


def test_an_owner_that_is_still_stopping_is_waited_for(bench: Bench, worker: str) -> None:
    """Its batch in flight may still be written; the code says that trying again helps."""
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    before = dict(bench.store)
    refused = reset(bench)
    assert (refused.error, refused.answer.code.retriable) == ("REBALANCE_IN_PROGRESS", True)
    assert worker in refused.answer.message
    assert bench.store == before
    bench.report(worker, "t", 1, TaskState.STOPPED)
    assert reset(bench).error == "NONE"


def test_an_owner_that_never_stops_is_fenced_and_then_the_task_can_be_reset(
    bench: Bench, worker: str
) -> None:
    """The wait is bounded by its rebalance timeout; whatever it says afterwards is stale."""
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {})
    for _ in range(7):
        bench.pass_time(9000)
        bench.heartbeat(worker)
    assert reset(bench).error == "NONE"
    assert bench.report(worker, "t", 1) == "STALE_TOKEN"
    assert bench.release(worker, t=1) == {"t": "STALE_TOKEN"}


def test_the_unknown_cannot_be_reset() -> None:
    """UNKNOWN_TASK; of an unknown group, GROUP_ID_NOT_FOUND."""
    assert reset(Bench()).error == "GROUP_ID_NOT_FOUND"
    assert reset(stopped()[0], "no").error == "UNKNOWN_TASK"


def test_asked_twice_it_is_done_twice_and_each_time_whole() -> None:
    """Each reset has a number and a token of its own; the last one's offsets count."""
    bench, worker = stopped()
    assert reset(bench, a=1).answer.reset == TaskReset(2, {"a": 1})
    assert reset(bench, a=1).answer.reset == TaskReset(3, {"a": 1})
    answer = reset(bench).answer
    assert (answer.token, answer.reset) == (4, TaskReset(4, "earliest"))
    granted = resume(bench, worker)
    assert (granted.token, granted.reset) == (5, TaskReset(4, "earliest"))


def test_a_reset_survives_a_crash() -> None:
    """Number, offsets and token are stored together, before the answer."""
    bench, worker = stopped()
    answer = reset(bench, a="b").answer
    bench.crash()
    assert bench.owner("t") == (None, answer.token, "STOPPED")
    assert bench.ask(GetTaskStatus(task="t")).answer.reset == answer.reset
    granted = resume(bench, worker)
    assert (granted.token, granted.reset) == (answer.token + 1, answer.reset)


def test_a_reset_and_its_token_are_one_transaction() -> None:
    """There is no moment at which one is stored without the other."""
    bench, _ = stopped()
    turn = bench.coordinator.handle("g", ResetTask(task="t"), Ask(), bench.instant)
    *_, stored = (row for row in turn.changes if isinstance(row, OwnershipRow))
    assert (stored.token, stored.reset) == (2, TaskReset(2))


@pytest.mark.parametrize("forgotten", [DeleteTask(task="t"), DeleteGroup()])
def test_a_number_outlives_its_task(forgotten: Any) -> None:
    """The fences of sinks know it: a task of the same name would be refused under a lower one."""
    bench, worker = stopped()
    told = reset(bench, a=1).answer.reset
    bench.leave((worker, None))
    assert bench.ask(forgotten).error == "NONE"
    bench.coordinator.bury("g")
    bench.create("t", target=Target.STOPPED)
    assert bench.ask(GetTask(task="t")).answer.reset == told
    assert reset(bench).answer.reset == TaskReset(told.number + 1)


def test_nothing_is_shown_of_what_was_before() -> None:
    """Neither batch nor metrics nor cause: they are those of the old checkpoint."""
    bench, _ = stopped()
    assert bench.ask(GetTaskStatus(task="t")).answer.batch_id == 7
    reset(bench)
    status = bench.ask(GetTaskStatus(task="t")).answer
    assert (status.batch_id, status.metrics, status.state) == (None, None, "STOPPED")
    assert bench.group.tasks.ownership["t"].cause is None


def test_a_completed_task_runs_again_after_a_reset(bench: Bench, worker: str) -> None:
    """It is what a reset of a bounded query is for."""
    bench.report(worker, "t", 1, TaskState.COMPLETED)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    assert reset(bench).error == "NONE"
    assert resume(bench, worker).token == 3


def test_offsets_that_the_source_cannot_take_are_refused_and_named() -> None:
    """The definition says which source it is; nothing is changed."""
    bench, _ = stopped()
    document = msgspec.Raw(b'{"source":{"format":"kafka"},"sink":{"format":"noop"}}')
    bench.ask(PutTask(task="t", definition=NewDefinition(document, 1.0, None, {})))
    before = dict(bench.store)
    refused = reset(bench, startingOffsets="soon", rows=1)
    assert refused.error == "INVALID_REQUEST"
    for named in ("offsets.startingOffsets: expected", "offsets.rows: does not say"):
        assert named in refused.answer.message
    assert bench.store == before


def test_whoever_looks_for_news_finds_it() -> None:
    """A reset is a change of what the task is granted as."""
    bench, _ = stopped()
    before = bench.group.header.tasks_revision
    reset(bench)
    assert bench.group.header.tasks_revision == before + 1


def test_a_reset_has_a_worker_tell_the_sink_of_it() -> None:
    """The stopped task is given to one under a higher token; when that has told it, the task is nobody's."""
    bench, worker = stopped()
    token = reset(bench).answer.token
    assert "nobody who had it before" in bench.ask(GetTaskStatus(task="t")).answer.cause
    bench.pass_time(1000)
    [offered] = bench.join(worker, kind="sparkherd").answer.tasks
    assert offered.task == "t"
    bench.deal([worker], {"t": worker})
    [granted] = bench.claim(worker, "t").answer.granted
    assert (granted.token, granted.target, granted.reset.number) == (token + 1, "STOPPED", token)
    assert bench.owner("t") == (worker, token + 1, "STOPPED")
    bench.crash()
    assert bench.report(worker, "t", token + 1, TaskState.STOPPED) == "NONE"
    assert bench.owner("t") == (None, token + 1, "STOPPED")
    assert bench.ask(GetTaskStatus(task="t")).answer.cause is None
    bench.redeal([worker], {})
    assert bench.group.tasks.offered == frozenset()


def test_a_sink_that_could_not_be_told_is_told_later() -> None:
    """The task is stopped, says why, and is given to a worker again with the next rebalance."""
    bench, worker = stopped()
    token = reset(bench).answer.token
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    bench.claim(worker, "t")
    bench.report(worker, "t", token + 1, TaskState.STOPPED, cause="no such host")
    assert bench.ask(GetTaskStatus(task="t")).answer.cause == "no such host"
    bench.redeal([worker], {"t": worker})
    assert [grant.token for grant in bench.claim(worker, "t").answer.granted] == [token + 2]


def test_the_reset_of_a_task_without_a_fence_has_nobody_to_tell(bench: Bench) -> None:
    """It was not reset before its last owner had stopped; its sink would not listen."""
    bench.create("t", target=Target.STOPPED, sink={"format": "parquet"})
    [worker] = bench.worker_group(1)
    bench.deal([worker], {})
    assert reset(bench).error == "NONE"
    bench.redeal([worker], {})
    assert bench.group.tasks.offered == frozenset()


def test_a_task_stopped_after_its_owner_was_lost_is_settled_by_another(bench: Bench) -> None:
    """Its former owner may be frozen; under a PAUSED task, too, which has told no sink of its token."""
    a, b = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=a))
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    [offered] = bench.join(b, kind="sparkherd").answer.tasks
    bench.deal([b], {offered.task: b})
    assert [grant.target for grant in bench.claim(b, "t").answer.granted] == ["STOPPED"]
    bench.report(b, "t", bench.owner("t")[1], TaskState.STOPPED)
    assert not bench.group.tasks.ownership["t"].unsettled


@pytest.mark.parametrize(
    ("state", "unsettled"), [(TaskState.RUNNING, False), (TaskState.PAUSED, True), (TaskState.FAILED, True)]
)
def test_who_has_run_a_task_has_settled_it(bench: Bench, state: TaskState, *, unsettled: bool) -> None:
    """A query raises the fence before it reads anything; what is paused or failed may never have had one."""
    a, b = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=a))
    bench.join(b, kind="sparkherd")
    bench.pass_time()
    bench.deal([b], {"t": b})
    bench.claim(b, "t")
    bench.report(b, "t", bench.owner("t")[1], state)
    bench.release(b, t=bench.owner("t")[1])
    assert bench.group.tasks.ownership["t"].unsettled is unsettled


def test_an_owner_that_is_too_slow_to_stop_leaves_a_task_to_be_settled(bench: Bench) -> None:
    """Nobody is assigned a stopped task, so the group has to be brought together for it."""
    a, b = bench.herd(2, "t", "u")
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([a, b], {"u": b})
    for _ in range(10):
        bench.heartbeat(a)
        bench.heartbeat(b)
        bench.pass_time(6000)
    bench.pass_time(1000)
    assert bench.state == "PreparingRebalance"
    assert [task.task for task in bench.rejoin([b, a], kind="sparkherd")[1].answer.tasks or ()] == ["t", "u"]
