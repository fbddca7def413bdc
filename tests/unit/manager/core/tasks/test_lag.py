"""How far tasks are behind: told by owners, and by the leader for those without one."""

from __future__ import annotations

from typing import Any

from manager.core import sessions
from manager.core.commands import DeleteTask, GetTask, GetTaskHistory, ListTasks, PutTask, ResetTask
from manager.core.tasks.lag import KEPT_MS, MOST_AT_ONCE
from protocol.connectors import Needs
from protocol.messages.lag import PartitionLag, TaskLag
from protocol.messages.membership import Leaver, LeaveRequest
from protocol.messages.ownership import LagRequest
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, definition

KAFKA = Needs(("kafka",))


def behind(rows: int, at_ms: int = 1, revision: int | None = None) -> TaskLag:
    """One partition, so many rows behind; the task was known as of that revision."""
    one = PartitionLag(topic="t", partition=0, committed=0, end=rows, behind=rows)
    return TaskLag(at_ms=at_ms, rows=rows, partitions=(one,), tasks_revision=revision)


def tell(bench: Bench, member_id: str, **tasks: TaskLag) -> list[str]:
    """What the member is to measure next, after it has told this."""
    answer = bench.ask(LagRequest(member_id=member_id, tasks=tasks)).answer
    return [task.task for task in answer.tasks]


def shown(bench: Bench, task: str) -> TaskLag | None:
    lag: TaskLag | None = bench.ask(GetTask(task=task)).answer.lag
    return lag


def with_two(*tasks: str) -> tuple[Bench, str, str]:
    """A leader and a follower; the tasks read Kafka, and are nobody's."""
    bench = Bench()
    for task in tasks:
        bench.create(task, needs=KAFKA, target=Target.STOPPED)
    leader, follower = bench.herd(2)
    return bench, leader, follower


def with_an_owner() -> tuple[Bench, str]:
    """The leader owns a task that reads Kafka."""
    bench = Bench()
    bench.create("t", needs=KAFKA)
    [owner] = bench.worker_group(1)
    bench.deal([owner], {"t": owner})
    bench.claim(owner, "t")
    return bench, owner


def test_an_owner_s_word_is_shown_with_its_partitions_and_in_lists_without() -> None:
    """A list of a thousand tasks has no room for all of them."""
    bench = Bench()
    [owner] = bench.herd(1, "t")
    token = bench.group.tasks.ownership["t"].token
    assert bench.report(owner, "t", token, lag=behind(7)) == "NONE"
    assert shown(bench, "t") == behind(7)
    [listed] = bench.ask(ListTasks()).answer.tasks
    assert (listed.lag.rows, listed.lag.partitions) == (7, ())


def test_a_report_without_it_leaves_it_as_it_is() -> None:
    """It is measured more seldom than reported."""
    bench = Bench()
    [owner] = bench.herd(1, "t")
    token = bench.group.tasks.ownership["t"].token
    bench.report(owner, "t", token, lag=behind(7))
    bench.report(owner, "t", token, batch_id=3)
    assert shown(bench, "t") == behind(7)


def test_the_leader_is_asked_for_what_nobody_owns() -> None:
    """Tasks of other sources it could not measure; what has an owner, that one tells."""
    bench, leader, _ = with_two("b", "a")
    bench.create("files", target=Target.STOPPED)
    assert tell(bench, leader) == ["a", "b"]
    tell(bench, leader, a=behind(5))
    assert shown(bench, "a") == behind(5)


def test_nobody_else_is_asked_or_believed() -> None:
    """There is one leader, and what it measures need not be measured twice."""
    bench, _, follower = with_two("a")
    assert tell(bench, follower, a=behind(5)) == []
    assert shown(bench, "a") is None


def test_what_the_leader_says_of_a_task_that_has_found_an_owner_is_too_late() -> None:
    """Its owner knows better; a task that is gone is nothing to speak of."""
    bench, owner = with_an_owner()
    assert tell(bench, owner, t=behind(5), gone=behind(5)) == []
    assert shown(bench, "t") is None
    assert "gone" not in bench.group.tasks.progress


def test_who_tells_of_lag_is_alive() -> None:
    """As after any other request of its own."""
    bench, leader, _ = with_two("a")
    member = bench.group.members[leader]
    before = bench.group.timers.deadline(sessions.key(member)) or 0
    bench.now += 500
    tell(bench, leader)
    assert bench.group.timers.deadline(sessions.key(member)) == before + 500


def test_a_task_that_begins_anew_is_measured_by_its_new_checkpoint() -> None:
    """The worker finds that by the number of the reset."""
    bench, leader, _ = with_two("a")
    bench.ask(ResetTask(task="a"))
    [told] = bench.ask(LagRequest(member_id=leader)).answer.tasks
    assert told.reset == bench.group.tasks.ownership["a"].reset is not None


def test_a_lag_forgets_nothing_of_a_task_that_was_reported_before() -> None:
    """A manager that has just taken the group over has heard of no batch, but has one stored."""
    bench, owner = with_an_owner()
    token = bench.group.tasks.ownership["t"].token
    bench.report(owner, "t", token, batch_id=7, state=TaskState.FAILED, cause="broken")
    bench.reload()
    bench.ask(LeaveRequest(members=(Leaver(owner),)))
    [leader] = bench.worker_group(1)
    tell(bench, leader, t=behind(5))
    assert bench.ask(GetTask(task="t")).answer.batch_id == 7


def test_of_many_those_that_were_asked_for_longest_ago_come_first() -> None:
    """So that none is forgotten, however many there are, and whatever becomes of those before it."""
    names = [f"t{number:03}" for number in range(MOST_AT_ONCE + 20)]
    bench, leader, _ = with_two(*names)
    assert bench.ask(LagRequest(member_id=leader)).answer.ownerless == MOST_AT_ONCE + 20
    bench, leader, _ = with_two(*names)
    first = tell(bench, leader)
    assert first == names[:MOST_AT_ONCE]
    bench.now += 1
    second = tell(bench, leader, **{name: behind(1, at_ms=5) for name in first[30:]})
    assert second == [*names[MOST_AT_ONCE:], *names[:80]]
    bench.now += 1
    assert tell(bench, leader)[:20] == names[80:100]


def test_who_has_more_to_say_is_asked_for_nothing_yet() -> None:
    """Whatever is named in an answer counts as asked for, so only the last request gets one with tasks."""
    names = [f"t{number:03}" for number in range(MOST_AT_ONCE + 20)]
    bench, leader, _ = with_two(*names)
    first = LagRequest(member_id=leader, tasks={names[0]: behind(5)}, more=True)
    assert bench.ask(first).answer.tasks == ()
    assert shown(bench, names[0]) == behind(5)
    assert tell(bench, leader) == names[:MOST_AT_ONCE]


def test_a_chart_can_be_drawn_of_it() -> None:
    """The last word in ten seconds stays; where nobody has said anything there is no point of it."""
    bench = Bench()
    [owner] = bench.herd(1, "t")
    token = bench.group.tasks.ownership["t"].token
    for rows in (9, 4):
        bench.report(owner, "t", token, lag=behind(rows))
    points: Any = bench.ask(GetTaskHistory(task="t")).answer.points
    assert [point.lag for point in points] == [4]


def test_a_lag_that_is_not_known_is_told_with_the_reason() -> None:
    """And draws nothing."""
    bench, leader, _ = with_two("a")
    trouble = TaskLag(at_ms=3, trouble="no broker answers")
    tell(bench, leader, a=trouble)
    assert shown(bench, "a") == trouble
    assert [point.lag for point in bench.ask(GetTaskHistory(task="a")).answer.points] == []


def told_by(bench: Bench, leader: str) -> tuple[list[str], int]:
    """What the leader is to measure, and as of which revision it is to measure that."""
    answer = bench.ask(LagRequest(member_id=leader)).answer
    return [task.task for task in answer.tasks], answer.tasks_revision


def test_a_task_with_another_definition_has_no_lag_of_the_former() -> None:
    """It may read nothing of Kafka's any more; a word of before the change comes too late."""
    bench, owner = with_an_owner()
    token, before = bench.group.tasks.ownership["t"].token, bench.group.header.tasks_revision
    bench.report(owner, "t", token, lag=behind(7, revision=before))
    assert shown(bench, "t") == behind(7, revision=before)
    bench.ask(PutTask(task="t", definition=definition(sql="SELECT 1")))
    assert shown(bench, "t") is None
    bench.report(owner, "t", token, lag=behind(8, revision=before))
    assert shown(bench, "t") is None
    now = bench.group.header.tasks_revision
    bench.report(owner, "t", token, lag=behind(1, revision=now))
    assert shown(bench, "t") == behind(1, revision=now)


def test_a_task_that_is_defined_as_it_was_keeps_its_lag() -> None:
    """Applying a file again changes nothing."""
    bench, owner = with_an_owner()
    token = bench.group.tasks.ownership["t"].token
    bench.report(owner, "t", token, lag=behind(7))
    bench.ask(PutTask(task="t", definition=definition(needs=KAFKA)))
    assert shown(bench, "t") == behind(7)


def test_the_leader_s_word_of_before_a_reset_is_not_taken() -> None:
    """It is by the former checkpoint; nor one of a task that was deleted and made again."""
    bench, leader, _ = with_two("a")
    _, former = told_by(bench, leader)
    bench.ask(ResetTask(task="a"))
    tell(bench, leader, a=behind(5, revision=former))
    assert shown(bench, "a") is None
    _, present = told_by(bench, leader)
    tell(bench, leader, a=behind(5, revision=present))
    assert shown(bench, "a") == behind(5, revision=present)
    bench.ask(DeleteTask(task="a"))
    bench.create("a", needs=KAFKA, target=Target.STOPPED)
    tell(bench, leader, a=behind(5, revision=present))
    assert shown(bench, "a") is None


def test_a_lag_that_was_told_long_ago_is_not_shown() -> None:
    """Whoever has the task by now may have nothing to measure it by."""
    bench, leader, _ = with_two("a")
    tell(bench, leader, a=behind(5))
    bench.now += KEPT_MS
    assert shown(bench, "a") == behind(5)
    bench.now += 1
    assert shown(bench, "a") is None
    [listed] = bench.ask(ListTasks()).answer.tasks
    assert listed.lag is None
