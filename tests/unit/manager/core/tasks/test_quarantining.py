"""Quarantines that a task's owner asks for, because its query takes more than a limit allows."""

from __future__ import annotations

from typing import Any

import pytest

from manager.core.commands import (
    DeleteTask,
    DrainMember,
    GetTaskStatus,
    PutTask,
    RestartTask,
    SetTarget,
)
from protocol.errors import ErrorCode
from protocol.messages.events import EventType
from protocol.messages.membership import EngineEnd
from protocol.messages.ownership import ReportRequest, TaskReport
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, definition

CAUSE = "limits.state_rows: its state has 11 rows, more than 10"


def status(bench: Bench, task: str = "a") -> Any:
    """As admins see it."""
    return bench.ask(GetTaskStatus(task=task)).answer


def told(bench: Bench, task: str = "a") -> list[tuple[str, str | None, str | None]]:
    """The events of a task that say how it ended."""
    kinds = {EventType.TASK_FAILED, EventType.TASK_QUARANTINED}
    return [
        (each.type, each.member, each.cause)
        for each in bench.told
        if each.task == task and each.type in kinds
    ]


def token_of(bench: Bench, task: str = "a") -> int:
    """Its present token."""
    return bench.group.tasks.ownership[task].token


def ask_for_it(bench: Bench, owner: str, *, token: int | None = None, **more: Any) -> str:
    """The owner's report that its query is over and that nobody is to run it; the error."""
    fields = {"quarantine": True, "cause": CAUSE, "tasks_revision": bench.group.header.tasks_revision} | more
    return bench.report(owner, "a", token_of(bench) if token is None else token, TaskState.FAILED, **fields)


def is_quarantined(bench: Bench) -> bool:
    """Whether it is in quarantine, as admins see it and as is stored."""
    row = bench.group.tasks.ownership["a"]
    assert status(bench).quarantined == row.is_quarantined
    return row.is_quarantined


@pytest.fixture
def herd(bench: Bench) -> list[str]:
    """Two workers; the first owns `a`, which is up, the second `b`."""
    ids = bench.herd(2, "a", "b")
    bench.report(ids[0], "a", token_of(bench), batch_id=0)
    return ids


def test_its_owner_lets_go_and_nobody_else_is_given_it(bench: Bench, herd: list[str]) -> None:
    """It is FAILED with the owner's words, told once, and left out when the group is dealt anew."""
    assert ask_for_it(bench, herd[0]) == "NONE"
    shown = status(bench)
    assert (shown.state, shown.cause, shown.owner, shown.quarantined) == ("FAILED", CAUSE, None, True)
    assert told(bench) == [
        (EventType.TASK_FAILED, herd[0], CAUSE),
        (EventType.TASK_QUARANTINED, herd[0], CAUSE),
    ]
    assert [(each.task, each.error) for each in bench.claim(herd[0], "a").answer.refused] == [
        ("a", "NOT_ASSIGNED")
    ]
    bench.pass_time(100)
    assert bench.state == "PreparingRebalance"
    bench.redeal(herd, {"b": herd[1]})
    assert status(bench).assigned_to is None
    assert status(bench, "b").state == "STARTING"


def test_a_report_that_arrives_twice_is_stale_and_changes_nothing(bench: Bench, herd: list[str]) -> None:
    """Its answer was lost; the worker ends what it has of the task."""
    token = token_of(bench)
    ask_for_it(bench, herd[0])
    assert ask_for_it(bench, herd[0], token=token, cause="another") == "STALE_TOKEN"
    assert (status(bench).cause, len(told(bench))) == (CAUSE, 2)
    assert bench.release(herd[0], a=token) == {"a": "STALE_TOKEN"}
    assert is_quarantined(bench)


def test_the_report_of_a_former_owner_quarantines_nothing(bench: Bench, herd: list[str]) -> None:
    """The task runs elsewhere by now."""
    token = token_of(bench)
    bench.redeal(herd, {"a": herd[1], "b": herd[1]})
    bench.release(herd[0], a=token)
    bench.claim(herd[1], "a")
    assert ask_for_it(bench, herd[0], token=token) == "STALE_TOKEN"
    assert ask_for_it(bench, herd[0]) == "STALE_TOKEN"
    assert (status(bench).state, is_quarantined(bench)) == ("STARTING", False)


@pytest.mark.parametrize(
    "orders",
    [
        [RestartTask(task="a")],
        [PutTask(task="a", definition=definition(v=2))],
        [SetTarget(task="a", target=Target.PAUSED)],
        [SetTarget(task="a", target=Target.STOPPED)],
        [SetTarget(task="a", target=Target.STOPPED), SetTarget(task="a", target=Target.RUNNING)],
    ],
)
@pytest.mark.parametrize("knows", [True, False])
def test_what_somebody_has_wanted_since_counts_more(
    bench: Bench, herd: list[str], orders: list[Any], *, knows: bool
) -> None:
    """The query that went too far is none that is wanted now: its owner keeps the task, and does that."""
    before = bench.group.header.tasks_revision
    for order in orders:
        assert bench.ask(order).error == "NONE"
    wanted = orders[-1].target if isinstance(orders[-1], SetTarget) else Target.RUNNING
    revision = bench.group.header.tasks_revision if knows and wanted is not Target.RUNNING else before
    assert ask_for_it(bench, herd[0], tasks_revision=revision) == "NONE"
    assert not is_quarantined(bench)
    assert (status(bench).state, status(bench).owner) == ("FAILED", herd[0])


def test_a_change_that_means_nothing_to_the_query_puts_it_off(bench: Bench, herd: list[str]) -> None:
    """The owner says it again when it has heard of the other weight; a failure is told once."""
    before = bench.group.header.tasks_revision
    bench.ask(PutTask(task="a", definition=definition(weight=2.0)))
    ask_for_it(bench, herd[0], tasks_revision=before)
    assert not is_quarantined(bench)
    ask_for_it(bench, herd[0])
    assert is_quarantined(bench)
    assert [kind for kind, _, _ in told(bench)] == [EventType.TASK_FAILED, EventType.TASK_QUARANTINED]


def test_changes_of_other_tasks_do_not_count(bench: Bench, herd: list[str]) -> None:
    """They make the group's revision grow, too."""
    before = bench.group.header.tasks_revision
    bench.ask(RestartTask(task="b"))
    ask_for_it(bench, herd[0], tasks_revision=before)
    assert is_quarantined(bench)


def test_an_owner_that_was_told_no_revision_is_believed(bench: Bench, herd: list[str]) -> None:
    """A manager of before has granted the task."""
    ask_for_it(bench, herd[0], tasks_revision=None)
    assert is_quarantined(bench)


def test_a_worker_that_knows_of_no_quarantine_reports_a_failure(bench: Bench, herd: list[str]) -> None:
    """And keeps the task, as ever."""
    assert bench.report(herd[0], "a", token_of(bench), TaskState.FAILED, cause=CAUSE) == "NONE"
    assert (status(bench).owner, is_quarantined(bench)) == (herd[0], False)


@pytest.mark.parametrize(
    "wrong", [{"state": TaskState.RUNNING}, {"state": TaskState.STOPPED}, {"cause": None}, {"cause": " \n"}]
)
def test_it_goes_with_a_failure_and_why(bench: Bench, herd: list[str], wrong: dict[str, Any]) -> None:
    """Nothing of such a request is taken in."""
    good: dict[str, Any] = {
        "task": "a",
        "token": token_of(bench),
        "state": TaskState.FAILED,
        "cause": CAUSE,
        "quarantine": True,
    }
    answer = bench.ask(ReportRequest(member_id=herd[0], tasks=(TaskReport(**(good | wrong)),))).answer
    assert answer.code is ErrorCode.INVALID_REQUEST
    assert answer.message.startswith("tasks[0].quarantine: goes with state FAILED and a cause")
    assert not is_quarantined(bench)


@pytest.mark.parametrize("engine", [None, EngineEnd.EXITED, EngineEnd.KILLED])
def test_the_death_of_its_worker_right_after_the_report_says_nothing(
    bench: Bench, herd: list[str], engine: EngineEnd | None
) -> None:
    """Neither cause nor quarantine is another one, and nothing is held against the task."""
    ask_for_it(bench, herd[0])
    bench.die(herd[0], engine)
    assert (status(bench).cause, is_quarantined(bench)) == (CAUSE, True)
    assert bench.group.tasks.ownership["a"].blame.deaths == ()  # type: ignore[union-attr]
    assert len(told(bench)) == 2


def test_it_outlasts_managers_drains_and_lost_workers(herd: list[str], bench: Bench) -> None:
    """Whoever takes the group up finds it so, and gives the task to nobody."""
    ask_for_it(bench, herd[0])
    bench.crash()
    assert (status(bench).state, status(bench).cause, is_quarantined(bench)) == ("FAILED", CAUSE, True)
    bench.redeal(herd, {"b": herd[1]})
    bench.ask(DrainMember(member_id=herd[0], draining=True))
    bench.redeal(herd, {"b": herd[1]})
    bench.die(herd[0])
    joined = bench.join(herd[1], kind="sparkherd", metadata={"owned": {"b": 1}})
    assert [task.task for task in joined.answer.tasks] == ["b"]
    assert (status(bench).cause, is_quarantined(bench)) == (CAUSE, True)


def test_a_report_that_a_manager_took_with_it_is_taken_by_the_next(bench: Bench, herd: list[str]) -> None:
    """Nothing of it was stored, so the owner owns the task still, and says it again."""
    bench.crash()
    assert ask_for_it(bench, herd[0]) == "NONE"
    assert is_quarantined(bench)


@pytest.mark.parametrize(
    "order",
    [
        RestartTask(task="a"),
        SetTarget(task="a", target=Target.RUNNING),
        PutTask(task="a", definition=definition(v=2)),
    ],
)
def test_whoever_takes_its_side_ends_it(bench: Bench, herd: list[str], order: Any) -> None:
    """It is dealt again, to its worker of before under a higher token, though that has not let go yet."""
    token = token_of(bench)
    ask_for_it(bench, herd[0])
    assert bench.ask(order).error == "NONE"
    assert (status(bench).state, status(bench).cause, is_quarantined(bench)) == ("UNASSIGNED", None, False)
    bench.pass_time(100)
    bench.redeal(herd, {"a": herd[0], "b": herd[1]})
    [granted] = bench.claim(herd[0], "a").answer.granted
    assert granted.token > token


def test_a_deleted_task_takes_it_with_it(bench: Bench, herd: list[str]) -> None:
    """One of the same name is another task."""
    ask_for_it(bench, herd[0])
    bench.ask(DeleteTask(task="a"))
    bench.create("a")
    assert (status(bench).state, is_quarantined(bench)) == ("UNASSIGNED", False)


def test_a_task_without_a_fence_is_waited_for_no_more(bench: Bench, herd: list[str]) -> None:
    """Its query is over by its owner's word: restarted, it is granted at once, though the owner was lost."""
    bench.ask(PutTask(task="a", definition=definition(sink={"format": "noop"})))
    ask_for_it(bench, herd[0])
    bench.die(herd[0])
    bench.ask(RestartTask(task="a"))
    bench.redeal(herd[1:], {"a": herd[1], "b": herd[1]})
    assert [each.task for each in bench.claim(herd[1], "a").answer.granted] == ["a"]


def test_the_limit_is_told_before_it(bench: Bench, herd: list[str]) -> None:
    """With its owner, in one report."""
    ask_for_it(bench, herd[0], metrics={"exceeded": {"state_rows": 1}})
    exceeded = [each for each in bench.told if each.type == EventType.TASK_LIMIT_EXCEEDED]
    assert [(each.member, each.reasons) for each in exceeded] == [(herd[0], {"state_rows": 1})]
