"""Requests about quarantined rows: the owner does them, under its token, and each is answered once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core.commands import AskQuarantine, CheckDefinition, DeleteTask, PutTask, RemoveMember, SetTarget
from manager.core.task_registry import Holding
from manager.core.tasks.errands import WAY_MS
from protocol.errors import Failure
from protocol.messages.quarantine import (
    UNHEARD,
    FetchQuarantineRequest,
    QuarantineAnswer,
    QuarantineRequest,
    QuarantineResponse,
    QuarantineTrouble,
    ReportQuarantineRequest,
)
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import SESSION_MS, Ask, Bench, definition

KNOWING = {"quarantine": True, "checks": True}
ANSWER = QuarantineAnswer(total=3, replayed=2, stayed=1, notes=("one violates it still",))


def owned(
    *tasks: str, instance: str | None = None, metadata: Any = KNOWING, bench: Bench | None = None
) -> tuple[Bench, str]:
    """A stable group with one worker that owns `tasks`."""
    bench = bench or Bench()
    bench.create(*(tasks or ("t",)))
    joined = bench.join(instance_id=instance, kind="sparkherd", metadata=metadata)
    bench.pass_time()
    worker = str(joined.answer.member_id)
    bench.deal([worker], dict.fromkeys(tasks or ("t",), worker))
    bench.claim(worker, *(tasks or ("t",)))
    return bench, worker


def ask(bench: Bench, action: Any = "list", task: str = "t", timeout_ms: int = 30_000, **wanted: Any) -> Ask:
    request = QuarantineRequest(action=action, **wanted)
    return bench.ask(AskQuarantine(task=task, wanted=request, timeout_ms=timeout_ms))


def told(bench: Bench, member_id: str, known: str | None = None) -> str | None:
    """The request that a heartbeat is answered with."""
    answer = bench.heartbeat(member_id, wait_ms=0, quarantine=known).answer
    return None if answer.quarantine is msgspec.UNSET else str(answer.quarantine)


def sure(errand: str | None) -> str:
    assert errand is not None
    return errand


def fetch(bench: Bench, member_id: str, errand: str) -> Ask:
    return bench.ask(FetchQuarantineRequest(member_id=member_id, quarantine=errand))


def report(bench: Bench, member_id: str, errand: str, **outcome: Any) -> Ask:
    told = outcome or {"result": ANSWER}
    return bench.ask(ReportQuarantineRequest(member_id=member_id, quarantine=errand, **told))


def token(bench: Bench, task: str = "t") -> int:
    return bench.group.tasks.ownership[task].token


def message(asked: Ask) -> str:
    assert isinstance(asked.answer, Failure)
    return asked.answer.message


def test_the_owner_hears_of_it_at_once_and_its_word_is_passed_on() -> None:
    """With the task, the token that it has it under, what is wanted, and what is left of the time."""
    bench, worker = owned()
    held = bench.heartbeat(worker, wait_ms=3000)
    asked = ask(bench, "replay", ids=("0-1-2",), masked=False)
    errand = held.answer.quarantine
    bench.pass_time(1000)
    found = fetch(bench, worker, errand).answer
    assert (found.task, found.token) == ("t", token(bench))
    wanted = QuarantineRequest(action="replay", ids=("0-1-2",), masked=False, timeout_ms=29_000)
    assert found.request == wanted
    assert report(bench, worker, errand).error == "NONE"
    assert (asked.answer.worker, asked.answer.replayed, asked.answer.notes) == (worker, 2, ANSWER.notes)
    assert told(bench, worker) is None


def test_a_heartbeat_is_held_while_the_worker_knows_what_there_is() -> None:
    """It is answered at once when it does not know, or knows of one that is over."""
    bench, worker = owned()
    ask(bench)
    errand = bench.heartbeat(worker, wait_ms=3000).answer.quarantine
    assert bench.heartbeat(worker, wait_ms=3000, quarantine=errand).waits
    report(bench, worker, errand)
    assert bench.heartbeat(worker, wait_ms=3000, quarantine=errand).answer.quarantine is msgspec.UNSET


def test_a_response_has_whatever_an_answer_has() -> None:
    """It is passed on as it comes."""
    answer, response = (
        {each.name: each.default for each in msgspec.structs.fields(kind)}
        for kind in (QuarantineAnswer, QuarantineResponse)
    )
    assert {name for name in response if name not in answer} == {"error", "worker"}
    assert {name: response[name] for name in answer} == answer


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target.RUNNING, "no worker has task u, which is UNASSIGNED; ask again when a worker has it"),
        (Target.STOPPED, "no worker has task u, which is STOPPED; pause or resume it first"),
    ],
)
def test_a_task_that_nobody_has(target: Target, why: str) -> None:
    """It is said what to do, and that asking again may help."""
    bench = Bench()
    bench.create("u", target=target)
    bench, _ = owned(bench=bench)
    refused = ask(bench, task="u")
    assert (refused.error, message(refused)) == ("TASK_NOT_OWNED", why)
    assert refused.answer.code.retriable


def test_a_completed_task_is_to_run_again_first() -> None:
    """Its worker has let go of it, and nobody is to take it up."""
    bench, worker = owned()
    bench.report(worker, "t", token(bench), TaskState.COMPLETED)
    assert message(ask(bench)) == "no worker has task t, which is COMPLETED; have it run again first"


@pytest.mark.parametrize("state", [TaskState.PAUSED, TaskState.FAILED])
def test_a_task_that_does_not_run_can_be_asked_about(state: TaskState) -> None:
    """Whoever owns it reaches its rows: that is when people look."""
    bench, worker = owned()
    bench.report(worker, "t", token(bench), state, cause="it broke")
    assert ask(bench).waits
    assert told(bench, worker) is not None


def test_an_unknown_group_an_unknown_task_and_a_rebalancing_group() -> None:
    """Each is told apart."""
    assert ask(Bench()).error == "GROUP_ID_NOT_FOUND"
    bench, _ = owned()
    assert ask(bench, task="no").error == "UNKNOWN_TASK"
    bench.join(kind="sparkherd", metadata=KNOWING)
    assert ask(bench).error == "REBALANCE_IN_PROGRESS"


def test_a_worker_of_an_earlier_version_is_not_told() -> None:
    """It would pass it over: whoever asks hears what to do."""
    bench, worker = owned(metadata={"checks": True})
    refused = ask(bench)
    assert refused.error == "NO_ELIGIBLE_WORKER"
    assert "is of an earlier version" in message(refused)
    assert told(bench, worker) is None


def test_two_at_once() -> None:
    """A worker does one at a time, of whichever of its tasks; a check beside it."""
    bench, worker = owned("t", "u")
    first = ask(bench)
    second = ask(bench, task="u")
    assert second.error == "QUARANTINE_BUSY"
    assert second.answer.code.retriable
    command = CheckDefinition(definition=definition(), rows=1, begin="end", timeout_ms=1000)
    assert bench.ask(command).waits
    both = bench.heartbeat(worker, wait_ms=0).answer
    assert len({both.check, both.quarantine} - {msgspec.UNSET}) == 2
    report(bench, worker, both.quarantine)
    assert first.error == "NONE"
    assert ask(bench, task="u").waits
    still = bench.heartbeat(worker, wait_ms=0, check=both.check).answer
    assert (still.check, still.quarantine not in {both.quarantine, msgspec.UNSET}) == (both.check, True)


def test_an_errand_of_another_kind_is_not_taken_for_it() -> None:
    """A member that mixes them up, or means harm, answers nobody's question with another's answer."""
    bench, worker = owned()
    command = CheckDefinition(definition=definition(), rows=1, begin="end", timeout_ms=1000)
    checked = bench.ask(command)
    check = bench.heartbeat(worker, wait_ms=0).answer.check
    assert report(bench, worker, check).error == "UNKNOWN_QUARANTINE_REQUEST"
    assert checked.waits


@pytest.mark.parametrize("how", ["is released", "completes", "is deleted"])
def test_the_owner_that_loses_the_task_meanwhile(how: str) -> None:
    """Whoever asked hears so, the worker hears that there is nothing to do, and its word is refused."""
    bench, worker = owned("t", "u")
    asked = ask(bench, "replay")
    errand = sure(told(bench, worker))
    held = bench.heartbeat(worker, wait_ms=9000, quarantine=errand)
    before = token(bench)
    if how == "is released":
        bench.release(worker, t=before)
    elif how == "completes":
        bench.report(worker, "t", before, TaskState.COMPLETED)
    else:
        bench.ask(DeleteTask(task="t"))
    assert asked.error == "QUARANTINE_INTERRUPTED"
    assert message(asked) == f"the worker {worker} has task t no more under token {before}{UNHEARD}"
    if how != "is deleted":
        assert held.answer.quarantine is msgspec.UNSET
    assert report(bench, worker, errand).error == "UNKNOWN_QUARANTINE_REQUEST"


def test_the_same_worker_under_another_token_is_another_owner() -> None:
    """It was asked as the one that it was before: the task may have been elsewhere meanwhile."""
    bench, worker = owned()
    asked = ask(bench)
    bench.release(worker, t=token(bench))
    bench.claim(worker, "t")
    assert bench.group.tasks.owner_of("t") == worker
    assert asked.error == "QUARANTINE_INTERRUPTED"
    assert bench.group.tasks.holds(worker, Holding("t", token(bench)))
    assert not bench.group.tasks.holds(worker, Holding("t", token(bench) - 1))


def test_another_definition_does_not_end_it() -> None:
    """The owner stays, and has seen to it what runs now."""
    bench, worker = owned()
    asked = ask(bench)
    errand = sure(told(bench, worker))
    bench.ask(PutTask(task="t", definition=definition(x=1)))
    bench.ask(SetTarget(task="t", target=Target.PAUSED))
    report(bench, worker, errand)
    assert asked.error == "NONE"


@pytest.mark.parametrize("how", ["leaves", "dies", "is removed"])
@pytest.mark.parametrize(("action", "more"), [("list", ""), ("discard", UNHEARD)])
def test_whoever_asked_is_told_when_the_worker_goes(how: str, action: str, more: str) -> None:
    """And of what changes something, that it may be done in part."""
    bench, worker = owned()
    asked = ask(bench, action)
    errand = sure(told(bench, worker))
    if how == "leaves":
        bench.leave((worker, None))
    elif how == "dies":
        bench.pass_time(SESSION_MS)
    else:
        bench.ask(RemoveMember(member_id=worker))
    assert asked.error == "QUARANTINE_INTERRUPTED"
    assert message(asked) == f"the worker {worker} is no member of the group any more{more}"
    assert report(bench, worker, errand).error == "UNKNOWN_MEMBER_ID"


def test_a_worker_that_is_replaced_does_it_no_more() -> None:
    """The new process owns under the same instance id, and is not told of it."""
    bench, worker = owned(instance="one")
    asked = ask(bench)
    errand = sure(told(bench, worker))
    new = bench.join(instance_id="one", kind="sparkherd", metadata=KNOWING).answer.member_id
    assert asked.error == "QUARANTINE_INTERRUPTED"
    assert report(bench, new, errand).error == "UNKNOWN_QUARANTINE_REQUEST"


def test_it_goes_on_through_a_rebalance_in_which_the_owner_stays() -> None:
    """Its task is not touched either."""
    bench, worker = owned()
    asked = ask(bench)
    errand = sure(told(bench, worker))
    bench.join(kind="sparkherd", metadata=KNOWING)
    owns = {"owned": {"t": token(bench)}} | KNOWING
    bench.join(worker, kind="sparkherd", metadata=owns)
    bench.pass_time()
    assert report(bench, worker, errand).error == "NONE"
    assert asked.answer.worker == worker


@pytest.mark.parametrize(("action", "more"), [("show", ""), ("replay", UNHEARD)])
def test_the_time_limit(action: str, more: str) -> None:
    """The worker is let be, and hears so; its word is refused, and does it no harm."""
    bench, worker = owned()
    asked = ask(bench, action, timeout_ms=1000)
    errand = sure(told(bench, worker))
    held = bench.heartbeat(worker, wait_ms=9000, quarantine=errand)
    bench.pass_time(1000 + WAY_MS - 1)
    assert asked.waits
    bench.pass_time(1)
    assert asked.error == "QUARANTINE_TIMED_OUT"
    assert message(asked) == f"the worker {worker} has said nothing within 1 s{more}"
    assert held.answer.quarantine is msgspec.UNSET
    assert report(bench, worker, errand).error == "UNKNOWN_QUARANTINE_REQUEST"
    assert bench.heartbeat(worker).error == "NONE"


def test_whoever_hangs_up_is_waited_for_by_nobody() -> None:
    """The worker hears that there is nothing to do any more, and others have their turn."""
    bench, worker = owned()
    asked = ask(bench)
    errand = sure(told(bench, worker))
    held = bench.heartbeat(worker, wait_ms=3000, quarantine=errand)
    bench.disconnect(asked)
    assert held.answer.quarantine is msgspec.UNSET
    assert fetch(bench, worker, errand).error == "UNKNOWN_QUARANTINE_REQUEST"
    assert ask(bench).waits


def test_trouble_is_passed_on_with_its_code() -> None:
    """As when the grant of the token has not reached the worker yet."""
    bench, worker = owned()
    asked = ask(bench)
    errand = sure(told(bench, worker))
    trouble = QuarantineTrouble(code="TASK_NOT_OWNED", message="it changes hands")
    report(bench, worker, errand, trouble=trouble)
    assert (asked.error, message(asked)) == ("TASK_NOT_OWNED", "it changes hands")


def test_a_manager_that_lets_the_group_go_leaves_nobody_waiting() -> None:
    """Whoever takes it up knows nothing of it: it is in no database."""
    bench, worker = owned()
    asked = ask(bench)
    assert asked in bench.coordinator.evict("g")
    bench.crash()
    assert told(bench, worker) is None
