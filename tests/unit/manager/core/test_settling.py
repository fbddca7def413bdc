"""Stopped tasks whose sink has yet to be told: who is given them, and whose word counts."""

from __future__ import annotations

import pytest

from manager.core.commands import DrainMember, GetTaskStatus, RemoveMember, ResetTask, SetTarget
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench

FORMER = {"settles": False}


def unsettled(**joins: bool) -> tuple[Bench, dict[str, str]]:
    """A stopped task that was reset, in a group of these workers; each can settle, or cannot."""
    bench = Bench()
    bench.create("t", target=Target.STOPPED)
    ids: dict[str, str] = {}
    for name, settles in joins.items():
        for other, member_id in ids.items():
            bench.join(member_id, kind="sparkherd", metadata={"settles": joins[other], "before": name})
        newcomer = bench.join(kind="sparkherd", metadata={"settles": settles})
        for other, member_id in ids.items():
            bench.join(member_id, kind="sparkherd", metadata={"settles": joins[other], "with": name})
        bench.pass_time()
        ids[name] = str(newcomer.answer.member_id)
    bench.deal(list(ids.values()), {})
    bench.ask(ResetTask(task="t"))
    return bench, ids


def rebalance(bench: Bench, **settles: bool) -> tuple[str, ...]:
    """The named members come together again; what the leader is offered."""
    bench.pass_time(1000)
    asks = [
        bench.join(member_id, kind="sparkherd", metadata={"settles": can, "at": bench.now})
        for member_id, can in settles.items()
    ]
    bench.pass_time()
    [offered] = [[task.task for task in ask.answer.tasks] for ask in asks if ask.answer.members]
    return tuple(offered)


def test_no_stopped_task_is_offered_where_a_worker_cannot_settle_it() -> None:
    """Its leader may be of any version, and would give it to that worker; the status says so."""
    bench, ids = unsettled(old=False, new=True)
    assert rebalance(bench, **{ids["old"]: False, ids["new"]: True}) == ()
    cause = bench.ask(GetTaskStatus(task="t")).answer.cause
    assert "nobody who had it before" in cause
    assert "earlier version" in cause


def test_it_is_offered_when_the_last_of_them_is_gone() -> None:
    """A worker that leaves brings the group together: an upgrade settles what it finds."""
    bench, ids = unsettled(old=False, new=True)
    bench.leave((ids["old"], None))
    assert rebalance(bench, **{ids["new"]: True}) == ("t",)


def test_a_worker_that_is_drained_is_in_nobody_s_way() -> None:
    """It is given nothing, whatever it can."""
    bench, ids = unsettled(old=False, new=True)
    bench.ask(DrainMember(member_id=ids["old"], draining=True))
    assert rebalance(bench, **{ids["old"]: False, ids["new"]: True}) == ("t",)


def test_a_stopped_task_is_granted_to_none_that_cannot_settle_it() -> None:
    """Whatever a leader has decided."""
    bench, ids = unsettled(old=False, new=True)
    rebalance(bench, **{ids["old"]: False, ids["new"]: True})
    bench.deal(list(ids.values()), {"t": ids["old"]})
    answer = bench.claim(ids["old"], "t").answer
    assert (answer.granted, [refused.error for refused in answer.refused]) == ((), ["NOT_ASSIGNED"])


@pytest.mark.parametrize("settles", [False, True])
def test_the_word_of_a_worker_that_cannot_settle_does_not_count(*, settles: bool) -> None:
    """It may have begun no query under its token before it was told to stop, so its sink knows of none."""
    bench = Bench()
    zombie, worker = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=zombie))
    bench.join(worker, kind="sparkherd", metadata={"settles": settles})
    bench.pass_time()
    bench.deal([worker], {"t": worker})
    bench.claim(worker, "t")
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    [granted] = bench.claim(worker, "t").answer.granted
    assert granted.target == "STOPPED"
    bench.crash()
    assert bench.report(worker, "t", granted.token, TaskState.STOPPED) == "NONE"
    assert bench.owner("t") == (None, granted.token, "STOPPED")
    assert bench.group.herd.ownership["t"].unsettled is not settles


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.COMPLETED])
def test_a_query_raises_the_fence_in_any_version(state: TaskState) -> None:
    """Before it reads anything, so its task is settled when it runs."""
    bench = Bench()
    zombie, worker = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=zombie))
    bench.join(worker, kind="sparkherd", metadata=FORMER)
    bench.pass_time()
    bench.deal([worker], {"t": worker})
    bench.claim(worker, "t")
    bench.report(worker, "t", bench.owner("t")[1], state)
    assert not bench.group.herd.ownership["t"].unsettled


def test_what_a_worker_can_is_read_with_each_of_its_joins() -> None:
    """Its latest word counts."""
    bench, ids = unsettled(new=False)
    assert rebalance(bench, **{ids["new"]: False}) == ()
    bench.deal([ids["new"]], {})
    assert rebalance(bench, **{ids["new"]: True}) == ("t",)


def test_metadata_that_is_none_of_a_worker_s_settles_nothing() -> None:
    """Whoever does not say so cannot."""
    bench, ids = unsettled(new=True)
    bench.pass_time(1000)
    assert bench.join(ids["new"], kind="sparkherd", metadata="hello").answer.tasks == ()


@pytest.mark.parametrize(("before", "after"), [(False, True), (True, False)])
def test_a_static_worker_that_was_upgraded_is_dealt_what_is_to_be_settled(
    *, before: bool, after: bool
) -> None:
    """It slips into its old place; else nobody would be asked to settle until something happens."""
    bench = Bench()
    bench.create("t", target=Target.STOPPED)
    first = bench.join(instance_id="s", kind="sparkherd", metadata={"settles": before})
    bench.pass_time()
    bench.deal([first.answer.member_id], {})
    bench.ask(ResetTask(task="t"))
    assert rebalance_static(bench, str(first.answer.member_id), settles=before) == (("t",) if before else ())
    bench.deal([first.answer.member_id], {})
    second = bench.join(instance_id="s", kind="sparkherd", metadata={"settles": after})
    assert second.answer.error == "NONE"
    bench.pass_time(1000)
    assert bench.state == ("PreparingRebalance" if after else "Stable")


def rebalance_static(bench: Bench, member_id: str, *, settles: bool) -> tuple[str, ...]:
    bench.pass_time(1000)
    metadata = {"settles": settles, "at": bench.now}
    joined = bench.join(member_id, "s", kind="sparkherd", metadata=metadata).answer
    return tuple(task.task for task in joined.tasks)


def take_over(bench: Bench) -> str:
    """A worker that has taken a task over from one that was lost, and has not told that it runs."""
    zombie, worker = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=zombie))
    bench.join(worker, kind="sparkherd")
    bench.pass_time()
    bench.deal([worker], {"t": worker})
    bench.claim(worker, "t")
    return worker


def stay(bench: Bench, worker: str, seconds: int) -> None:
    """Time goes by, and all that the worker does is to say that it is there."""
    for _ in range(seconds):
        bench.heartbeat(worker)
        bench.pass_time(1000)


def test_an_owner_that_does_not_stop_is_fenced_though_the_task_is_assigned_to_it() -> None:
    """It is given the stopped task once more, to settle it; that is no leave to keep it."""
    bench = Bench()
    worker = take_over(bench)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 58)
    assert bench.owner("t")[0] == worker
    assert bench.ask(ResetTask(task="t")).error == "REBALANCE_IN_PROGRESS"
    stay(bench, worker, 3)
    assert bench.owner("t")[0] is None
    assert bench.group.herd.ownership["t"].unsettled
    assert bench.ask(ResetTask(task="t")).error == "NONE"


def test_the_patience_with_it_is_not_begun_anew_by_rebalances() -> None:
    """The time runs from the first assignment of the stopped task."""
    bench = Bench()
    worker = take_over(bench)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 40)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 21)
    assert bench.owner("t")[0] is None


def test_who_was_granted_a_stopped_task_is_to_settle_it_in_time() -> None:
    """The grant begins the patience, for no assignment may come after it."""
    bench, ids = unsettled(new=True)
    rebalance(bench, **{ids["new"]: True})
    bench.deal([ids["new"]], {"t": ids["new"]})
    assert bench.claim(ids["new"], "t").answer.granted
    stay(bench, ids["new"], 61)
    assert bench.owner("t")[0] is None


def test_an_owner_whose_task_is_resumed_in_time_is_left_alone() -> None:
    """It may keep what it is to run."""
    bench = Bench()
    worker = take_over(bench)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 70)
    assert bench.owner("t")[0] == worker
