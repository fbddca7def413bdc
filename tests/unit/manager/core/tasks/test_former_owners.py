"""Tasks without a fence wait until their former owner has stopped by its own lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import (
    CreateTask,
    DeleteGroup,
    DeleteTask,
    GetTaskStatus,
    PutTask,
    RemoveMember,
    ResetTask,
    SetTarget,
)
from manager.core.tasks import former_owners
from protocol.messages.membership import EngineEnd, Leaver, LeaveRequest
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import REBALANCE_MS, SESSION_MS, Bench, definition

if TYPE_CHECKING:
    from collections.abc import Callable

SPARKS_OWN: dict[str, Any] = {"sink": {"format": "parquet"}}
FREE_MS = SESSION_MS * 5 // 4
"""How long nobody else is given the task: a worker stops it for a lease's end, by force if it has to."""
SINCE_MS = 3000
"""How long the owner has been silent when it goes."""


def unfenced(bench: Bench, members: int = 2, **document: Any) -> list[str]:
    """So many workers, the first of which owns `t`; what it writes to has no fence."""
    bench.create("t", **(document or SPARKS_OWN))
    ids = bench.worker_group(members)
    bench.deal(ids, {"t": ids[0]})
    bench.claim(ids[0], "t")
    return ids


def break_connection(bench: Bench, owner: str) -> None:
    """The connection of a held heartbeat closes, and nothing more is heard."""
    held = bench.heartbeat(owner, wait_ms=60_000)
    bench.pass_time(SINCE_MS - bench.settings.disconnect_grace_ms)
    bench.disconnect(held)
    bench.pass_time(bench.settings.disconnect_grace_ms)


def remove(bench: Bench, owner: str) -> None:
    """An admin removes it."""
    bench.heartbeat(owner)
    bench.pass_time(SINCE_MS)
    bench.ask(RemoveMember(member_id=owner))


def leave(bench: Bench, owner: str) -> None:
    """It leaves before its queries have stopped, and says so."""
    bench.heartbeat(owner)
    bench.pass_time(SINCE_MS)
    bench.leave((owner, None), stopped=False)


WAYS = [break_connection, remove, leave]


def hand_to(bench: Bench, heir: str) -> None:
    """The heir joins again and is given the task."""
    bench.join(heir, kind="sparkherd")
    bench.pass_time()
    bench.deal([heir], {"t": heir})


@pytest.mark.parametrize("go", WAYS)
def test_a_task_without_a_fence_waits_for_its_owner_s_lease(
    bench: Bench, go: Callable[[Bench, str], None]
) -> None:
    """A session and a quarter from the last thing heard of it; to the millisecond, and then at once."""
    owner, heir = unfenced(bench)
    go(bench, owner)
    hand_to(bench, heir)
    assert bench.owner("t") == (None, 1, "UNASSIGNED")
    [pending] = bench.claim(heir, "t").answer.pending
    assert (pending.task, pending.owner) == ("t", owner)
    bench.pass_time(FREE_MS - SINCE_MS - 1)
    bench.heartbeat(heir)
    waiting = bench.claim(heir, "t", wait_ms=3000)
    assert waiting.waits
    bench.pass_time(1)
    assert [grant.token for grant in waiting.answer.granted] == [2]
    assert bench.owner("t") == (heir, 2, "STARTING")


@pytest.mark.parametrize("go", WAYS)
@pytest.mark.parametrize(
    "document", [{"sink": {"format": "fenced_files"}}, {"sink": None, "entrypoint": "a:b", "fenced": True}]
)
def test_a_fenced_task_moves_at_once(
    bench: Bench, go: Callable[[Bench, str], None], document: dict[str, Any]
) -> None:
    """The sink refuses whatever the former owner still writes; of an entry point its author says so."""
    owner, heir = unfenced(bench, **document)
    go(bench, owner)
    hand_to(bench, heir)
    assert [grant.token for grant in bench.claim(heir, "t").answer.granted] == [2]


def test_an_entry_point_is_without_a_fence_unless_it_says_otherwise(bench: Bench) -> None:
    """Whether it uses the sink of its definition, or anything else, only its code knows."""
    owner, heir = unfenced(bench, entrypoint="a:b")
    bench.ask(RemoveMember(member_id=owner))
    hand_to(bench, heir)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]


def test_an_owner_whose_session_has_ended_may_still_be_stopping(bench: Bench) -> None:
    """Its lease has run out just before its session, and stopping many queries takes a while."""
    owner, heir = unfenced(bench)
    bench.pass_time(SESSION_MS // 2)
    bench.heartbeat(heir)
    bench.pass_time(SESSION_MS // 2)
    assert owner not in bench.group.members
    hand_to(bench, heir)
    bench.pass_time(FREE_MS - SESSION_MS - 1)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]
    bench.pass_time(1)
    assert [grant.token for grant in bench.claim(heir, "t").answer.granted] == [2]


def test_a_leave_is_proof(bench: Bench) -> None:
    """Whoever leaves runs nothing any more, released or not, unless it says otherwise."""
    owner, heir = unfenced(bench)
    bench.leave((owner, None))
    hand_to(bench, heir)
    assert [grant.token for grant in bench.claim(heir, "t").answer.granted] == [2]


@pytest.mark.parametrize("stopped", [True, False])
def test_the_leave_of_a_dead_engine_says_whether_its_queries_are_gone(*, bench: Bench, stopped: bool) -> None:
    """A batch that Python writes may go on without a JVM, and a Spark server out of reach with everything."""
    owner, heir = unfenced(bench)
    bench.ask(LeaveRequest(members=(Leaver(owner, engine=EngineEnd.LOST, stopped=stopped),)))
    hand_to(bench, heir)
    assert bool(bench.claim(heir, "t").answer.granted) is stopped


def test_the_leave_of_a_static_worker_in_its_absence_is_no_proof(bench: Bench) -> None:
    """With an empty member id, somebody else speaks for it (KIP-345)."""
    bench.create("t", **SPARKS_OWN)
    joined = bench.join(instance_id="a", kind="sparkherd")
    bench.pass_time()
    owner = str(joined.answer.member_id)
    bench.sync(owner, given={owner: {"tasks": ["t"]}}, instance_id="a")
    bench.claim(owner, "t")
    bench.leave(("", "a"))
    assert former_owners.holder(bench.group.tasks.ownership["t"]) == owner


def test_a_release_is_proof(bench: Bench) -> None:
    """A worker that leaves in order has released everything; so has one whose task moves."""
    owner, heir = unfenced(bench)
    assert bench.release(owner, t=1) == {"t": "NONE"}
    bench.leave((owner, None))
    hand_to(bench, heir)
    assert [grant.token for grant in bench.claim(heir, "t").answer.granted] == [2]


@pytest.mark.parametrize("state", [TaskState.STOPPED, TaskState.COMPLETED])
def test_the_report_of_an_ended_query_is_proof(bench: Bench, state: TaskState) -> None:
    """Nothing of it runs: it may be started anew at once."""
    owner, _ = unfenced(bench)
    assert bench.report(owner, "t", 1, state) == "NONE"
    assert bench.group.tasks.ownership["t"].lease is None


def test_an_owner_that_does_not_rejoin_is_waited_for_from_its_last_heartbeat(bench: Bench) -> None:
    """Its heartbeats were accepted all through the join phase, at whose end it is removed."""
    owner, heir = unfenced(bench)
    bench.join(heir, kind="sparkherd", metadata={"x": 1})
    for _ in range(REBALANCE_MS // 6000):
        assert bench.heartbeat(owner).error == "REBALANCE_IN_PROGRESS"
        bench.pass_time(6000)
    assert owner not in bench.group.members
    bench.deal([heir], {"t": heir})
    assert bench.claim(heir, "t").answer.pending
    bench.pass_time(FREE_MS - 6000)
    assert bench.claim(heir, "t").answer.granted


def test_a_static_member_that_was_replaced_may_still_run_its_tasks(bench: Bench) -> None:
    """Two processes with one instance id: the former one is told when it asks next, or never."""
    bench.create("t", **SPARKS_OWN)
    joined = bench.join(instance_id="s", kind="sparkherd")
    bench.pass_time()
    former = str(joined.answer.member_id)
    bench.sync(former, given={former: {"tasks": ["t"]}}, instance_id="s")
    bench.claim(former, "t")
    bench.pass_time(SINCE_MS)
    heir = str(bench.join(instance_id="s", kind="sparkherd").answer.member_id)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [former]
    bench.pass_time(FREE_MS - SINCE_MS)
    assert bench.claim(heir, "t").answer.granted


def too_slow(bench: Bench) -> tuple[str, str]:
    """The owner of `t` has had its rebalance timeout to let go of it; owner and heir."""
    owner, heir = unfenced(bench)
    bench.redeal([owner, heir], {"t": heir})
    for _ in range(REBALANCE_MS // 6000):
        bench.heartbeat(owner)
        bench.heartbeat(heir)
        bench.pass_time(6000)
    assert bench.report(owner, "t", 1) == "STALE_TOKEN"
    return owner, heir


def test_an_owner_that_does_not_let_go_has_a_session_timeout_and_more_to_find_out(bench: Bench) -> None:
    """It is told that its token is stale, or hears nothing and its lease runs out."""
    owner, heir = too_slow(bench)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]
    bench.pass_time(FREE_MS // 2)
    bench.heartbeat(owner)
    bench.heartbeat(heir)
    bench.pass_time(FREE_MS // 2)
    assert bench.claim(heir, "t").answer.granted


def test_a_late_release_ends_the_wait(bench: Bench) -> None:
    """The token is stale, so that is what it hears; that it has stopped counts all the same."""
    owner, heir = too_slow(bench)
    waiting = bench.claim(heir, "t", wait_ms=3000)
    assert bench.release(owner, t=1) == {"t": "STALE_TOKEN"}
    assert [grant.token for grant in waiting.answer.granted] == [2]


def test_a_release_by_anybody_else_ends_no_wait(bench: Bench) -> None:
    """Nor does one of another token."""
    owner, heir = too_slow(bench)
    assert bench.release(heir, t=1) == {"t": "STALE_TOKEN"}
    assert bench.release(owner, t=0) == {"t": "STALE_TOKEN"}
    assert bench.claim(heir, "t").answer.pending


def disown(bench: Bench) -> tuple[str, str]:
    """A worker that has lost its generation joins again as the owner of nothing; it and another one."""
    former, other = unfenced(bench)
    for member_id in (former, other):
        bench.join(member_id, kind="sparkherd", metadata={"owned": {}, "x": 1})
    return former, other


def test_what_a_worker_no_longer_owns_it_may_still_be_stopping(bench: Bench) -> None:
    """It has cut its queries without a release, and joins before they have ended."""
    former, other = disown(bench)
    bench.deal([former, other], {"t": other})
    assert [each.owner for each in bench.claim(other, "t").answer.pending] == [former]


def test_a_worker_waits_for_nobody_but_others(bench: Bench) -> None:
    """In one process a query begins when the one before is gone."""
    former, other = disown(bench)
    bench.deal([former, other], {"t": former})
    assert [grant.token for grant in bench.claim(former, "t").answer.granted] == [2]
    assert bench.group.tasks.ownership["t"].lease is None


@pytest.mark.parametrize("tells", [True, False])
def test_a_task_created_again_waits_for_the_owner_of_the_one_before(*, bench: Bench, tells: bool) -> None:
    """It has been deleted under its owner, who may not have heard of it; its release tells that it has."""
    owner, heir = unfenced(bench)
    bench.ask(DeleteTask(task="t"))
    if tells:
        assert bench.release(owner, t=1) == {"t": "UNKNOWN_TASK"}
    bench.create("t")
    bench.redeal([owner, heir], {"t": heir})
    assert bool(bench.claim(heir, "t").answer.pending) is not tells


def test_the_wait_outlives_the_group(bench: Bench) -> None:
    """A group that is deleted and made again under its name is no way around it."""
    [owner] = unfenced(bench, 1)
    bench.leave((owner, None), stopped=False)
    bench.pass_time()
    bench.ask(DeleteGroup())
    bench.coordinator.bury(bench.name)
    bench.create("t", **SPARKS_OWN)
    [heir] = bench.worker_group(1)
    bench.deal([heir], {"t": heir})
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]
    bench.pass_time(SESSION_MS // 2)
    bench.heartbeat(heir)
    bench.pass_time(FREE_MS - SESSION_MS // 2 - 1)
    bench.heartbeat(heir)
    bench.pass_time(1)
    assert bench.claim(heir, "t").answer.granted


def test_a_takeover_does_not_shorten_the_wait(bench: Bench) -> None:
    """The next manager does not know when the owner was heard: the full time again, as for members."""
    owner, heir = unfenced(bench)
    remove(bench, owner)
    hand_to(bench, heir)
    bench.crash()
    bench.pass_time(SESSION_MS // 2)
    bench.heartbeat(heir)
    bench.pass_time(FREE_MS - SESSION_MS // 2 - 1)
    bench.heartbeat(heir)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]
    bench.pass_time(1)
    assert bench.claim(heir, "t").answer.granted
    bench.crash()
    assert bench.group.tasks.ownership["t"].lease is None


@pytest.mark.parametrize(("before", "after"), [("parquet", "sql"), ("sql", "parquet")])
def test_a_definition_that_changed_under_the_owner_counts_as_the_one_without_a_fence(
    bench: Bench, before: str, after: str
) -> None:
    """A frozen owner runs the former one still; one that is awake runs the latter by now."""
    owner, heir = unfenced(bench, sink={"format": before})
    bench.ask(PutTask(task="t", definition=definition(sink={"format": after})))
    bench.crash()
    bench.leave((owner, None), stopped=False)
    hand_to(bench, heir)
    assert [each.owner for each in bench.claim(heir, "t").answer.pending] == [owner]


def test_whoever_waits_is_told_why(bench: Bench) -> None:
    """In the status, and to the one who wants to reset the task meanwhile."""
    owner, _ = unfenced(bench)
    bench.leave((owner, None), stopped=False)
    status = bench.ask(GetTaskStatus(task="t")).answer
    assert status.cause == f"it has no fence, and {owner} may still run it: it was heard not long enough ago"
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    refused = bench.ask(ResetTask(task="t"))
    assert refused.error == "REBALANCE_IN_PROGRESS"
    assert owner in refused.answer.message
    bench.pass_time(FREE_MS)
    assert bench.ask(ResetTask(task="t")).error == "NONE"


def test_a_new_name_waits_for_nobody(bench: Bench) -> None:
    """There is no former owner."""
    assert bench.ask(CreateTask(task="n", definition=definition(), target=Target.RUNNING)).error == "NONE"
    assert bench.group.tasks.ownership["n"].lease is None
