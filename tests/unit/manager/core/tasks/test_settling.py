"""Stopped tasks whose sink has yet to be told: who is given them, and whose word counts."""

from __future__ import annotations

import pytest

from manager.core.commands import DrainMember, GetTaskStatus, RemoveMember, ResetTask, SetTarget
from manager.core.tasks.settling import AT_ONCE
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
def test_the_word_of_a_worker_that_cannot_settle_does_not_count(*, bench: Bench, settles: bool) -> None:
    """It may have begun no query under its token before it was told to stop, so its sink knows of none."""
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
    assert bench.group.tasks.ownership["t"].unsettled is not settles


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.COMPLETED])
def test_a_query_raises_the_fence_in_any_version(bench: Bench, state: TaskState) -> None:
    """Before it reads anything, so its task is settled when it runs."""
    zombie, worker = bench.herd(2, "t")
    bench.ask(RemoveMember(member_id=zombie))
    bench.join(worker, kind="sparkherd", metadata=FORMER)
    bench.pass_time()
    bench.deal([worker], {"t": worker})
    bench.claim(worker, "t")
    bench.report(worker, "t", bench.owner("t")[1], state)
    assert not bench.group.tasks.ownership["t"].unsettled


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
    *, bench: Bench, before: bool, after: bool
) -> None:
    """It slips into its old place; else nobody would be asked to settle until something happens."""
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


def test_an_owner_that_does_not_stop_is_fenced_though_the_task_is_assigned_to_it(bench: Bench) -> None:
    """It is given the stopped task once more, to settle it; that is no leave to keep it."""
    worker = take_over(bench)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 58)
    assert bench.owner("t")[0] == worker
    assert bench.ask(ResetTask(task="t")).error == "REBALANCE_IN_PROGRESS"
    stay(bench, worker, 3)
    assert bench.owner("t")[0] is None
    assert bench.group.tasks.ownership["t"].unsettled
    assert bench.ask(ResetTask(task="t")).error == "NONE"


def test_the_patience_with_it_is_not_begun_anew_by_rebalances(bench: Bench) -> None:
    """The time runs from the first assignment of the stopped task."""
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


def test_whoever_was_too_slow_to_settle_a_task_is_not_given_it_back_at_once() -> None:
    """It would hold it for ever; nobody's, it can be reset."""
    bench, ids = unsettled(one=True, other=True)
    workers = list(ids.values())
    bench.pass_time(1000)
    bench.redeal(workers, {"t": ids["one"]})
    assert bench.claim(ids["one"], "t").answer.granted
    for _ in range(60):
        bench.heartbeat(ids["other"])
        stay(bench, ids["one"], 1)
    assert bench.owner("t")[0] is None
    [refused] = bench.claim(ids["one"], "t").answer.refused
    assert refused.error == "NOT_ASSIGNED"
    assert bench.ask(ResetTask(task="t")).error == "NONE"


def test_the_group_comes_together_for_a_task_that_nobody_was_quick_enough_to_settle() -> None:
    """It is offered again, and may be given to another worker."""
    bench, worker, names = many(1)
    bench.claim(worker, *names)
    stay(bench, worker, 59)
    assert bench.state == "Stable"
    stay(bench, worker, 2)
    assert bench.state == "PreparingRebalance"


def test_a_slow_owner_does_not_take_the_task_from_whom_it_is_assigned_to(bench: Bench) -> None:
    """Only what is given to itself is taken back; the other one's claim is granted."""
    zombie, one, other = bench.herd(3, "t")
    bench.ask(RemoveMember(member_id=zombie))
    for member in (one, other):
        bench.join(member, kind="sparkherd", metadata={"x": 1})
    bench.pass_time()
    bench.deal([one, other], {"t": one})
    bench.claim(one, "t")
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([one, other], {"t": other})
    for _ in range(61):
        bench.heartbeat(other)
        stay(bench, one, 1)
    [granted] = bench.claim(other, "t").answer.granted
    assert granted.target == "STOPPED"


def many(count: int) -> tuple[Bench, str, tuple[str, ...]]:
    """A worker that has been given so many stopped tasks to settle."""
    bench = Bench()
    names = tuple(f"t{number:02}" for number in range(count))
    bench.create(*names, target=Target.STOPPED)
    [worker] = bench.worker_group(1)
    bench.deal([worker], {})
    for name in names:
        bench.ask(ResetTask(task=name))
    bench.pass_time(1000)
    bench.redeal([worker], dict.fromkeys(names, worker))
    return bench, worker, names


def test_a_worker_settles_a_few_tasks_at_a_time() -> None:
    """The patience with it begins with the grant, so nothing is granted that would only wait there."""
    bench, worker, names = many(AT_ONCE + 2)
    answer = bench.claim(worker, *names).answer
    assert tuple(granted.task for granted in answer.granted) == names[:AT_ONCE]
    assert [(pending.task, pending.owner) for pending in answer.pending] == [(n, "") for n in names[AT_ONCE:]]
    again = bench.claim(worker, *names).answer
    assert tuple(granted.task for granted in again.granted) == names[:AT_ONCE]


def test_the_next_task_is_granted_as_soon_as_one_is_settled() -> None:
    """Its claim waits at the manager."""
    bench, worker, names = many(AT_ONCE + 2)
    bench.claim(worker, *names)
    waiting = bench.claim(worker, *names[AT_ONCE:], wait_ms=3000)
    assert waiting.waits
    bench.report(worker, names[0], bench.owner(names[0])[1], TaskState.STOPPED)
    assert [granted.task for granted in waiting.answer.granted] == [names[AT_ONCE]]


def test_what_is_to_run_does_not_wait_for_what_is_to_be_settled() -> None:
    """A worker that has its hands full of settling is granted it all the same."""
    bench, worker, names = many(AT_ONCE + 1)
    bench.claim(worker, *names[:AT_ONCE])
    bench.ask(SetTarget(task=names[AT_ONCE], target=Target.RUNNING))
    [granted] = bench.claim(worker, names[AT_ONCE]).answer.granted
    assert granted.target == "RUNNING"


def test_who_settles_a_thousand_tasks_one_after_the_other_keeps_each_until_it_is_done() -> None:
    """Every grant has the whole patience."""
    bench, worker, names = many(AT_ONCE * 3)
    left = list(names)
    for _ in range(3):
        granted = bench.claim(worker, *left).answer.granted
        assert len(granted) == AT_ONCE
        stay(bench, worker, 55)
        for each in granted:
            assert bench.report(worker, each.task, each.token, TaskState.STOPPED) == "NONE"
            left.remove(each.task)
        bench.pass_time(1000)
        bench.redeal([worker], dict.fromkeys(left, worker))
    assert not any(bench.group.tasks.ownership[name].unsettled for name in names)


def test_a_resumed_task_is_not_taken_from_its_owner_while_the_group_comes_together(bench: Bench) -> None:
    """Resuming ends the patience, and not the next assignment, for which somebody may keep all waiting."""
    one, other = bench.herd(2, "t")
    token = bench.owner("t")[1]
    bench.report(one, "t", token)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(100)
    bench.redeal([one, other], {})
    for _ in range(55):
        bench.heartbeat(other)
        stay(bench, one, 1)
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.pass_time(100)
    bench.join(one, kind="sparkherd", metadata={"owned": {"t": token}, "y": 1})
    for _ in range(8):
        bench.heartbeat(other)
        bench.pass_time(1000)
    assert bench.owner("t") == (one, token, "RUNNING")


def test_stopping_a_resumed_task_once_more_is_another_patience(bench: Bench) -> None:
    """The first one is over, not only put off."""
    worker = take_over(bench)
    for _ in range(3):
        bench.ask(SetTarget(task="t", target=Target.STOPPED))
        bench.pass_time(1000)
        bench.redeal([worker], {"t": worker})
        stay(bench, worker, 55)
        bench.ask(SetTarget(task="t", target=Target.RUNNING))
    assert bench.owner("t")[0] == worker


@pytest.mark.parametrize("settles", [False, True])
def test_a_worker_of_an_earlier_version_is_blamed_only_if_there_is_one(*, settles: bool) -> None:
    """Whoever reads it would look for one."""
    bench, _ = unsettled(one=True, other=settles)
    cause = bench.ask(GetTaskStatus(task="t")).answer.cause
    assert ("earlier version" in cause) is not settles


def test_an_owner_whose_task_is_resumed_in_time_is_left_alone(bench: Bench) -> None:
    """It may keep what it is to run."""
    worker = take_over(bench)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    stay(bench, worker, 70)
    assert bench.owner("t")[0] == worker
