"""An owner lets go of a task that was changed while its word was on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.commands import PutTask, RemoveMember, RestartTask, SetTarget
from protocol.messages.ownership import ReportRequest, TaskReport
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, definition

if TYPE_CHECKING:
    from protocol.messages.base import Request

RESTART = RestartTask(task="t")
REDEFINE = PutTask(task="t", definition=definition(sql="SELECT 2"))
STOP = SetTarget(task="t", target=Target.STOPPED)
RESUME = SetTarget(task="t", target=Target.RUNNING)
PAUSE = SetTarget(task="t", target=Target.PAUSED)


def revision(bench: Bench) -> int:
    """As a claim tells it."""
    return bench.group.header.tasks_revision


@pytest.fixture
def owner(bench: Bench) -> str:
    [member] = bench.herd(1, "t")
    bench.report(member, "t", 1, TaskState.RUNNING, batch_id=3)
    return member


@pytest.mark.parametrize("wanted", [RESTART, REDEFINE])
@pytest.mark.parametrize("is_told", [False, True])
def test_a_run_that_was_asked_for_is_not_over_with_the_one_before(
    *, bench: Bench, owner: str, wanted: Request, is_told: bool
) -> None:
    """Whether its owner has heard of it or not: the task is run once more, under the next token."""
    before = revision(bench)
    assert bench.ask(wanted).error == "NONE"
    if is_told:
        assert [each.token for each in bench.claim(owner, "t").answer.granted] == [1]
    assert bench.report(owner, "t", 1, TaskState.COMPLETED, tasks_revision=before) == "STALE_TOKEN"
    assert bench.owner("t") == (None, 1, "UNASSIGNED")
    [granted] = bench.claim(owner, "t").answer.granted
    assert (granted.token, granted.target) == (2, "RUNNING")
    assert bench.report(owner, "t", 2, TaskState.COMPLETED, tasks_revision=revision(bench)) == "NONE"
    assert bench.owner("t") == (None, 2, "COMPLETED")


def test_the_last_word_on_what_is_wanted_counts(bench: Bench, owner: str) -> None:
    """Other tasks may have changed since; and workers of former versions do not say what they knew."""
    before = revision(bench)
    bench.create("u")
    assert bench.report(owner, "t", 1, TaskState.COMPLETED, tasks_revision=before) == "NONE"
    assert bench.owner("t") == (None, 1, "COMPLETED")
    other = Bench()
    [former] = other.herd(1, "t")
    other.ask(RESTART)
    assert other.report(former, "t", 1, TaskState.COMPLETED) == "NONE"


def test_what_is_paused_is_not_over(bench: Bench, owner: str) -> None:
    """Whoever has paused it finds it so, and it runs when it is resumed."""
    before = revision(bench)
    bench.ask(PAUSE)
    bench.report(owner, "t", 1, TaskState.COMPLETED, tasks_revision=before)
    [granted] = bench.claim(owner, "t").answer.granted
    assert (granted.token, granted.target, bench.owner("t")) == (2, "PAUSED", (owner, 2, "PAUSED"))
    bench.ask(RESUME)
    assert bench.claim(owner, "t").answer.granted[0].target == "RUNNING"


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_late_report_of_a_stop_says_nothing_of_the_query_that_was_started_since(
    *, bench: Bench, owner: str, is_reloaded: bool
) -> None:
    """The task is taken from its owner, whatever that runs of it, and is not shown as stopped."""
    bench.ask(STOP)
    [told] = bench.claim(owner, "t").answer.granted
    assert (told.token, told.target) == (1, "STOPPED")
    known = revision(bench)
    bench.ask(RESUME)
    [granted] = bench.claim(owner, "t").answer.granted
    assert (granted.token, granted.target) == (1, "RUNNING")
    if is_reloaded:
        bench.crash()
    assert bench.report(owner, "t", 1, TaskState.STOPPED, tasks_revision=known) == "STALE_TOKEN"
    assert bench.owner("t") == (None, 1, "UNASSIGNED")
    assert bench.report(owner, "t", 1, TaskState.RUNNING) == "STALE_TOKEN"


def test_a_stop_before_the_last_one_is_not_that_one(bench: Bench, owner: str) -> None:
    """It was resumed in between, and is still being stopped: its owner has another try, or it is settled."""
    bench.ask(STOP)
    bench.claim(owner, "t")
    known = revision(bench)
    bench.ask(RESUME)
    bench.claim(owner, "t")
    bench.ask(STOP)
    assert bench.report(owner, "t", 1, TaskState.STOPPED, tasks_revision=known) == "STALE_TOKEN"
    assert bench.owner("t") == (None, 1, "STOPPED")
    assert bench.group.tasks.ownership["t"].unsettled


def test_what_was_granted_to_be_stopped_is_not_shown_as_stopped_when_it_is_to_run(bench: Bench) -> None:
    """Its owner was to settle it, and has done so when it was resumed already."""
    [lost] = bench.herd(1, "t")
    bench.ask(STOP)
    bench.ask(RemoveMember(member_id=lost))
    [heir] = bench.worker_group(1)
    bench.deal([heir], {"t": heir})
    [told] = bench.claim(heir, "t").answer.granted
    assert (told.token, told.target, bench.owner("t")) == (2, "STOPPED", (heir, 2, "STOPPED"))
    known = revision(bench)
    bench.ask(RESUME)
    assert bench.report(heir, "t", 2, TaskState.STOPPED, tasks_revision=known) == "STALE_TOKEN"
    assert bench.owner("t") == (None, 2, "UNASSIGNED")


def test_a_task_whose_last_word_is_refused_is_placed_again(bench: Bench) -> None:
    """It was assigned to nobody, as it was to be stopped; the next rebalance has it again."""
    a, b = bench.herd(2, "t", "u")
    bench.ask(STOP)
    bench.pass_time(1000)
    bench.redeal([a, b], {"u": b})
    known = revision(bench)
    bench.ask(RESUME)
    bench.report(a, "t", 1, TaskState.STOPPED, tasks_revision=known)
    bench.pass_time(1000)
    bench.redeal([a, b], {"t": b, "u": b})
    assert [each.token for each in bench.claim(b, "t").answer.granted] == [2]


def test_who_waits_for_a_fenced_task_has_it_at_once(bench: Bench) -> None:
    """It is assigned to another member by now: the fence keeps the former owner from writing."""
    a, b = bench.herd(2, "t", "u")
    before = revision(bench)
    bench.redeal([a, b], {"t": b, "u": b})
    waiting = bench.claim(b, "t", wait_ms=3000)
    bench.ask(RESTART)
    assert bench.report(a, "t", 1, TaskState.COMPLETED, tasks_revision=before) == "STALE_TOKEN"
    assert [(each.task, each.token) for each in waiting.answer.granted] == [("t", 2)]


def test_without_a_fence_nobody_has_it_while_its_former_owner_may_run_it(bench: Bench) -> None:
    """That one may have begun with the run that was asked for, and finds out by its next report."""
    bench.create("t", sink={"format": "parquet"})
    a, b = bench.worker_group(2)
    bench.deal([a, b], {"t": a})
    bench.claim(a, "t")
    before = revision(bench)
    bench.ask(RESTART)
    bench.redeal([a, b], {"t": b})
    assert bench.report(a, "t", 1, TaskState.COMPLETED, tasks_revision=before) == "STALE_TOKEN"
    pending = bench.claim(b, "t").answer.pending
    assert [(each.task, each.owner) for each in pending] == [("t", a)]
    bench.release(a, t=1)
    assert [each.token for each in bench.claim(b, "t").answer.granted] == [2]


def test_what_it_has_done_counts(bench: Bench, owner: str) -> None:
    """The run before has come further than was told, and the next owner's checkpoint has to know of it."""
    before = revision(bench)
    bench.ask(RESTART)
    entry = TaskReport(
        task="t",
        token=1,
        state=TaskState.COMPLETED,
        batch_id=9,
        checkpoint="file:/c/t",
        tasks_revision=before,
    )
    bench.ask(ReportRequest(member_id=owner, tasks=(entry,)))
    [granted] = bench.claim(owner, "t").answer.granted
    assert (granted.reached.batch_id, granted.reached.checkpoint) == (9, "file:/c/t")


@pytest.mark.parametrize(("given", "state"), [(("t",), "PreparingRebalance"), (("t", "u"), "Stable")])
def test_what_has_come_to_its_end_makes_room_for_what_waits_for_it(
    bench: Bench, given: tuple[str, ...], state: str
) -> None:
    """Workers may have a most of tasks. Where nothing waits, nobody is disturbed."""
    bench.create("t", "u")
    [worker] = bench.worker_group(1)
    bench.deal([worker], dict.fromkeys(given, worker))
    bench.claim(worker, *given)
    bench.crash()
    assert bench.report(worker, "t", 1, TaskState.COMPLETED) == "NONE"
    bench.pass_time(1000)
    assert bench.state == state
