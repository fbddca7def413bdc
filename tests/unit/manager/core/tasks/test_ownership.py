from __future__ import annotations

import pytest

from manager.core.commands import DeleteGroup, DeleteTask, GetTaskStatus, PutTask, RestartTask, SetTarget
from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment, SyncRequest
from protocol.messages.ownership import ReleaseRequest
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, dealt, definition


def test_a_claim_counts_the_token_up_and_a_repeat_does_not(bench: Bench, worker: str) -> None:
    """Idempotent: the same token, the present definition and target."""
    [granted] = bench.claim(worker, "t").answer.granted
    assert (granted.token, granted.target, granted.definition_version) == (1, "RUNNING", 1)


def test_a_claim_is_refused_to_whom_the_assignment_does_not_name(bench: Bench) -> None:
    """NOT_ASSIGNED and UNKNOWN_TASK, a task at a time."""
    a, b = bench.herd(2, "t", "u")
    refused = bench.claim(b, "t", "nothing").answer.refused
    assert [(r.task, r.error) for r in refused] == [("t", "NOT_ASSIGNED"), ("nothing", "UNKNOWN_TASK")]
    assert bench.owner("t") == (a, 1, "STARTING")


def test_a_task_moves_in_one_round(bench: Bench) -> None:
    """The new owner's claim waits for the release and is granted by it; what stays is not touched."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    waiting = bench.claim(b, "t", wait_ms=3000)
    assert waiting.waits
    assert bench.release(a, t=1) == {"t": "NONE"}
    assert [(g.task, g.token) for g in waiting.answer.granted] == [("t", 2)]
    assert bench.owner("u") == (b, 1, "STARTING")


def test_what_is_free_is_granted_at_once_beside_what_is_not(bench: Bench) -> None:
    """Only a claim of which nothing can be granted waits."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    answer = bench.claim(b, "t", "u", wait_ms=3000).answer
    assert [g.task for g in answer.granted] == ["u"]
    assert [(p.task, p.owner) for p in answer.pending] == [("t", a)]


def test_a_claim_of_what_is_owned_leaves_a_waiting_claim_alone(bench: Bench) -> None:
    """A worker looks after its own tasks while it waits for another."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    waiting = bench.claim(b, "t", wait_ms=3000)
    assert [g.task for g in bench.claim(b, "u").answer.granted] == ["u"]
    assert waiting.waits
    bench.release(a, t=1)
    assert [g.task for g in waiting.answer.granted] == ["t"]


def test_a_claim_waits_no_longer_than_it_said(bench: Bench) -> None:
    """Then it is told what is pending."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": a})
    waiting = bench.claim(b, "t", wait_ms=500)
    bench.pass_time(499)
    assert waiting.waits
    bench.pass_time(1)
    assert [p.task for p in waiting.answer.pending] == ["t"]


def test_an_owner_that_does_not_let_go_is_fenced_after_its_rebalance_timeout(bench: Bench) -> None:
    """Counted from the first assignment that took the task away, not from a later one."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": a})
    for _ in range(6):
        bench.pass_time(9_000)
        bench.heartbeat(a)
        bench.heartbeat(b)
    bench.redeal([a, b], {"t": b, "u": a})
    bench.pass_time(3_000)
    bench.heartbeat(a)
    held = bench.heartbeat(a, wait_ms=60_000)
    waiting = bench.claim(b, "t", wait_ms=60_000)
    bench.pass_time(2_999)
    assert waiting.waits
    bench.pass_time(1)
    assert [g.token for g in waiting.answer.granted] == [2]
    assert held.error == "NONE"
    assert bench.report(a, "t", 1) == "STALE_TOKEN"
    assert bench.release(a, t=1) == {"t": "STALE_TOKEN"}


@pytest.mark.parametrize("way", ["held", "between two", "after a crash"])
def test_a_fenced_owner_is_told_to_look_after_its_tasks(bench: Bench, way: str) -> None:
    """The revision grows, so that its heartbeat, the present one or the next, is news to it."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    seen = bench.group.header.tasks_revision
    for _ in range(7):
        bench.pass_time(8_000)
        bench.heartbeat(b)
        bench.heartbeat(a)
    bench.pass_time(2_000)
    held = bench.heartbeat(a, wait_ms=60_000, tasks_revision=seen) if way == "held" else None
    bench.pass_time(2_000)
    assert bench.owner("t")[0] is None
    if way == "after a crash":
        bench.crash()
    beat = held or bench.heartbeat(a, wait_ms=60_000, tasks_revision=seen)
    assert beat.answer.tasks_revision > seen
    assert bench.heartbeat(a, wait_ms=60_000, tasks_revision=beat.answer.tasks_revision).waits


def test_a_rebalance_answers_waiting_claims(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS, and no claim is served until the next assignment."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": a})
    waiting = bench.claim(b, "t", wait_ms=3000)
    bench.join(kind="sparkherd")
    assert waiting.error == "REBALANCE_IN_PROGRESS"
    assert bench.claim(b, "t").error == "REBALANCE_IN_PROGRESS"
    assert bench.release(a, t=1) == {"t": "NONE"}


@pytest.mark.parametrize("way", ["leave", "silence"])
def test_the_tasks_of_a_lost_member_are_free_at_once(bench: Bench, way: str) -> None:
    """Leaving and expiry alike; the one who takes over has a higher token."""
    a, b = bench.herd(2, "t", "u")
    assert bench.report(b, "u", 1) == "NONE"
    if way == "leave":
        bench.leave((b, None))
    else:
        bench.pass_time(5_000)
        bench.heartbeat(a)
        bench.pass_time(5_000)
    assert bench.owner("u") == (None, 1, "UNASSIGNED")
    bench.redeal([a], {"t": a, "u": a})
    assert [g.token for g in bench.claim(a, "u").answer.granted] == [2]


def test_a_returning_static_worker_claims_its_tasks_with_higher_tokens(bench: Bench) -> None:
    """The old process may still be writing: its token is stale."""
    bench.create("t")
    old = bench.join(instance_id="s", kind="sparkherd")
    bench.pass_time()
    old_id = old.answer.member_id
    bench.deal([old_id], {"t": old_id})
    bench.claim(old_id, "t")
    new = bench.join(instance_id="s", kind="sparkherd").answer.member_id
    assert [g.token for g in bench.claim(new, "t").answer.granted] == [2]


def test_a_member_that_rejoins_as_the_owner_of_none_owns_none(bench: Bench) -> None:
    """Protocol §7: it lost its generation and stopped everything without releasing it."""
    a, b = bench.herd(2, "t", "u")
    bench.join(a, kind="sparkherd", metadata={"owned": {}, "x": 1})
    bench.join(b, kind="sparkherd", metadata={"owned": {"u": 1}})
    assert bench.owner("t")[0] is None
    assert bench.owner("u")[0] == b


def test_a_member_whose_grant_is_still_on_its_way_keeps_the_token(bench: Bench) -> None:
    """It rejoined before it could hear that it owns the task; what it hears then must not be stale."""
    a, b = bench.herd(2, "t", "u")
    bench.join(a, kind="sparkherd", metadata={"owned": {}, "claiming": ["t"]})
    bench.join(b, kind="sparkherd", metadata={"owned": {"u": 1}})
    assert bench.owner("t")[:2] == (a, 1)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"tasks": ["t", "no"]}, "'no' is no task"),
        ({"tasks": ["t", "t"]}, "'t' is given twice"),
        ([], "object"),
    ],
)
def test_a_faulty_assignment_is_refused_and_a_better_one_awaited(given: object, fault: str) -> None:
    """INVALID_ASSIGNMENT lists the faults; the group stays in AwaitingSync."""
    bench = Bench()
    bench.create("t")
    [worker] = bench.worker_group(1)
    refusal = bench.sync(worker, given={worker: given}).answer
    assert (refusal.code.name, bench.state) == ("INVALID_ASSIGNMENT", "AwaitingSync")
    assert fault in refusal.message
    bench.deal([worker], {"t": worker})


def test_a_task_deleted_while_the_leader_was_thinking_is_no_fault_of_its(bench: Bench) -> None:
    """It was offered, so it may be named."""
    bench.create("t", "u")
    [worker] = bench.worker_group(1)
    bench.ask(DeleteTask(task="u"))
    bench.deal([worker], {"t": worker, "u": worker})
    assert [r.error for r in bench.claim(worker, "u").answer.refused] == ["UNKNOWN_TASK"]


def test_a_report_sets_the_state_and_an_old_one_changes_nothing(bench: Bench, worker: str) -> None:
    """Batch and metrics are shown, the cause of a failure too."""
    assert bench.report(worker, "t", 1, batch_id=7, metrics={"rows": 3}) == "NONE"
    assert bench.report(worker, "t", 0, TaskState.FAILED, cause="zombie") == "STALE_TOKEN"
    status = bench.ask(GetTaskStatus(task="t")).answer
    assert (status.state, status.batch_id, status.metrics, status.cause) == ("RUNNING", 7, {"rows": 3}, None)
    assert bench.report(worker, "t", 1, TaskState.FAILED, cause="no such path") == "NONE"
    status = bench.ask(GetTaskStatus(task="t")).answer
    assert (status.state, status.owner, status.cause) == ("FAILED", worker, "no such path")


def test_a_stopped_task_belongs_to_nobody_and_is_not_offered(bench: Bench, worker: str) -> None:
    """Its owner is woken, sees the target with its claim, and reports; resuming places it again."""
    held = bench.heartbeat(worker, wait_ms=3000, tasks_revision=bench.group.header.tasks_revision)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    assert held.answer.tasks_revision == 2
    assert bench.claim(worker, "t").answer.granted[0].target == "STOPPED"
    bench.report(worker, "t", 1, TaskState.STOPPED)
    assert bench.owner("t") == (None, 1, "STOPPED")
    bench.pass_time(1000)
    offered = bench.join(worker, kind="sparkherd", metadata=1).answer.tasks
    assert offered == ()
    bench.deal([worker], {})
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    assert bench.owner("t")[2] == "UNASSIGNED"
    bench.pass_time(1000)
    assert [t.task for t in bench.join(worker, kind="sparkherd").answer.tasks] == ["t"]


def test_pausing_wakes_the_owner_and_does_not_rebalance(bench: Bench, worker: str) -> None:
    """A paused task stays assigned and owned."""
    held = bench.heartbeat(worker, wait_ms=3000, tasks_revision=1)
    bench.ask(SetTarget(task="t", target=Target.PAUSED))
    assert held.answer.tasks_revision == 2
    bench.pass_time(2000)
    assert bench.state == "Stable"
    assert bench.claim(worker, "t").answer.granted[0].target == "PAUSED"
    bench.report(worker, "t", 1, TaskState.PAUSED)
    assert bench.owner("t") == (worker, 1, "PAUSED")


def test_no_wake_up_is_lost_between_two_heartbeats(bench: Bench) -> None:
    """A heartbeat behind a change of an own task is answered at once, of another's it is held."""
    a, b = bench.herd(2, "t", "u")
    bench.ask(RestartTask(task="t"))
    assert bench.heartbeat(a, wait_ms=3000, tasks_revision=2).answer.tasks_revision == 3
    assert bench.heartbeat(b, wait_ms=3000, tasks_revision=2).waits
    assert bench.claim(a, "t").answer.granted[0].restart_count == 1


def test_a_completed_task_is_nobodys_until_it_is_restarted(bench: Bench, worker: str) -> None:
    """COMPLETED is not offered to the assignor; a restart has it placed again."""
    bench.report(worker, "t", 1, TaskState.COMPLETED, batch_id=4)
    assert bench.owner("t") == (None, 1, "COMPLETED")
    assert [r.error for r in bench.claim(worker, "t").answer.refused] == ["NOT_ASSIGNED"]
    bench.pass_time(2000)
    assert bench.state == "Stable"
    bench.ask(RestartTask(task="t"))
    bench.pass_time(1000)
    assert (bench.state, bench.owner("t")[2]) == ("PreparingRebalance", "UNASSIGNED")


def test_a_burst_of_new_tasks_makes_one_rebalance(bench: Bench, worker: str) -> None:
    """Gathered while they keep coming, for a second at most."""
    for number in range(500):
        bench.create(f"n{number}")
        bench.pass_time(1)
    assert bench.state == "Stable"
    bench.pass_time(50)
    assert bench.state == "PreparingRebalance"
    assert len(bench.join(worker, kind="sparkherd").answer.tasks) == 501


def test_gathering_ends_after_a_second_at_the_latest(bench: Bench) -> None:
    """A trickle of changes does not put the rebalance off for ever."""
    bench.herd(1, "t")
    for number in range(25):
        bench.create(f"n{number}")
        bench.pass_time(40)
    assert bench.state == "PreparingRebalance"


def test_putting_the_same_definition_changes_nothing(bench: Bench, worker: str) -> None:
    """An idempotent upsert; another one counts the version up and wakes the owner."""
    same = bench.ask(PutTask(task="t", definition=definition())).answer
    assert (same.created, same.view.definition_version) == (False, 1)
    held = bench.heartbeat(worker, wait_ms=3000, tasks_revision=1)
    other = bench.ask(PutTask(task="t", definition=definition(x=1))).answer
    assert (other.view.definition_version, held.error) == (2, "NONE")
    bench.pass_time(2000)
    assert bench.state == "Stable"
    bench.ask(PutTask(task="t", definition=definition(weight=2.0, x=1)))
    bench.pass_time(1000)
    assert bench.state == "PreparingRebalance"


def test_tokens_outlive_task_and_group(bench: Bench) -> None:
    """A name used again goes on counting, also after a crash."""
    [worker] = bench.herd(1, "t")
    bench.ask(DeleteTask(task="t"))
    bench.leave((worker, None))
    assert bench.ask(DeleteGroup()).error == "NONE"
    assert bench.state == "Dead"
    bench.coordinator.bury("g")
    bench.crash()
    [worker] = bench.herd(1, "t")
    assert bench.owner("t")[1] == 2
    assert bench.group.generation == 1


def test_a_crash_leaves_owners_tokens_and_targets_as_they_were(bench: Bench) -> None:
    """A member in Stable notices nothing."""
    a, b = bench.herd(2, "t", "u")
    bench.crash()
    assert bench.heartbeat(a).error == "NONE"
    assert bench.claim(b, "u").answer.granted[0].token == 1
    assert bench.owner("t") == (a, 1, "STARTING")


def test_a_crash_in_the_gathering_window_still_rebalances(bench: Bench, worker: str) -> None:
    """The added task is not forgotten."""
    bench.create("u")
    bench.crash()
    assert bench.heartbeat(worker).error == "REBALANCE_IN_PROGRESS"
    joined = bench.join(worker, kind="sparkherd")
    assert [t.task for t in joined.answer.tasks] == ["t", "u"]


def test_a_crash_between_join_and_sync_takes_the_rebalance_up_again(bench: Bench) -> None:
    """No generation is issued twice: those who heard of it go on from it."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], dealt([a, b], ("t", "u")))
    bench.join(a, kind="sparkherd", metadata=2)
    bench.join(b, kind="sparkherd", metadata={"owned": {"u": 1}})
    generation = bench.group.generation
    bench.crash()
    assert bench.sync(a, generation).error == "REBALANCE_IN_PROGRESS"
    bench.join(a, kind="sparkherd", metadata=3)
    assert bench.join(b, kind="sparkherd", metadata=4).answer.generation_id == generation + 1


def test_a_task_the_leader_left_out_says_why_even_after_a_crash(bench: Bench) -> None:
    """The leader's own assignment carries the reasons; a leader that gives none is said to."""
    bench.create("t", "u")
    [worker] = bench.worker_group(1)
    given = {"tasks": [], "left_out": {"t": "no worker has the label zone=b"}}
    bench.settle([worker], {worker: given})
    silent = bench.ask(GetTaskStatus(task="u")).answer.cause
    assert silent == "the leader gave it to no worker, and did not say why"
    bench.crash()
    assert bench.ask(GetTaskStatus(task="t")).answer.cause == "no worker has the label zone=b"


def test_what_a_leader_says_of_tasks_is_kept_within_bounds(bench: Bench) -> None:
    """Reasons are cut, those of tasks that are none are not kept; of faults the first are told."""
    bench.create("t")
    [worker] = bench.worker_group(1)
    faulty = {"tasks": [f"no-{number}" for number in range(30)]}
    refusal = bench.sync(worker, given={worker: faulty}).answer
    assert "'no-19' is no task of the group; and 10 more" in refusal.message
    assert "no-20" not in refusal.message
    bench.settle([worker], {worker: {"tasks": [], "left_out": {"t": "x" * 9000, "gone": "why"}}})
    assert bench.group.tasks.left_out == {"t": "x" * 500}


def test_of_two_entries_for_one_member_the_last_one_counts(bench: Bench) -> None:
    """In memory as in the store: a reload finds the same assignment."""
    bench.create("t", "u")
    [worker] = bench.worker_group(1)
    entries = tuple(MemberAssignment(worker, encode_opaque({"tasks": [task]})) for task in ("t", "u"))
    request = SyncRequest(member_id=worker, generation_id=bench.group.generation, assignments=entries)
    assert bench.ask(request).error == "NONE"
    assert bench.group.tasks.assigned == {"u": worker}
    bench.crash()
    assert bench.group.tasks.assigned == {"u": worker}


def test_a_task_created_while_the_leader_thinks_outlasts_a_crash_after_its_assignment(bench: Bench) -> None:
    """The assignment does not have it, so being Stable is not all there is to resume."""
    bench.create("t")
    [worker] = bench.worker_group(1)
    bench.create("u")
    bench.deal([worker], {"t": worker})
    bench.crash()
    assert bench.state == "PreparingRebalance"


def test_the_leader_is_told_what_tasks_were_measured_to_be(bench: Bench) -> None:
    """By their owners, in the metrics of their reports; nonsense counts as not measured."""
    [worker] = bench.herd(1, *"tuvwxy")
    for task, load in (("t", 0.25), ("u", "much"), ("w", -1), ("x", 1e300), ("y", True)):
        bench.report(worker, task, 1, metrics={"load": load})
    leader = bench.join(worker, kind="sparkherd")
    assert {task.task: task.load for task in leader.answer.tasks} == {**dict.fromkeys("tuvwxy"), "t": 0.25}


@pytest.mark.parametrize("what", ["task", "group"])
def test_a_name_used_again_has_its_own_definition_and_a_higher_token(bench: Bench, what: str) -> None:
    """Its version begins at 1 again, for a task or a whole group that was deleted: it tells nobody apart."""
    [worker] = bench.herd(1, "t")
    if what == "task":
        bench.ask(DeleteTask(task="t"))
    else:
        bench.leave((worker, None))
        bench.pass_time()
        bench.ask(DeleteGroup())
        bench.coordinator.bury(bench.name)
    assert bench.ask(PutTask(task="t", definition=definition(n=2))).answer.created
    if what == "task":
        bench.redeal([worker], {"t": worker})
    else:
        [worker] = bench.worker_group(1)
        bench.deal([worker], {"t": worker})
    [granted] = bench.claim(worker, "t").answer.granted
    assert (granted.token, granted.definition_version) == (2, 1)
    assert bytes(granted.definition) == bytes(definition(n=2).document)


def test_an_owner_that_asks_is_told_its_token_also_when_the_task_moves_on(bench: Bench) -> None:
    """Its grant may have been lost on the way: knowing the token it can release what the heir waits for."""
    a, b = bench.herd(2, "t", "u")
    token = bench.owner("t")[1]
    bench.redeal([a, b], {"t": b, "u": b})
    waiting = bench.claim(b, "t", wait_ms=3000)
    assert [(g.task, g.token) for g in bench.claim(a, "t").answer.granted] == [("t", token)]
    assert waiting.waits
    bench.release(a, t=token)
    assert [g.task for g in waiting.answer.granted] == ["t"]


def test_a_task_whose_query_runs_on_is_free_and_not_settled(bench: Bench) -> None:
    """Its next owner has it at once; stopped before there is one, it has yet to be kept from writing."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    waiting = bench.claim(b, "t", wait_ms=3000)
    answer = bench.ask(ReleaseRequest(member_id=a, tasks={"t": 1}, running=("t", "strange"))).answer
    assert dict(answer.tasks) == {"t": "NONE"}
    assert [(each.task, each.token) for each in waiting.answer.granted] == [("t", 2)]
    bench.ask(ReleaseRequest(member_id=b, tasks={"u": 1}, running=("u",)))
    assert bench.group.tasks.ownership["u"].unsettled
    assert bench.owner("u") == (None, 1, "UNASSIGNED")
    bench.ask(SetTarget(task="u", target=Target.STOPPED))
    assert bench.group.tasks.is_runnable("u"), "it is to be settled"


def test_a_query_without_a_fence_that_runs_on_is_waited_for(bench: Bench) -> None:
    """No worker leaves one running; should one do so, its lease keeps others from the task."""
    bench.create("t", sink={"format": "parquet"})
    a, b = bench.worker_group(2)
    bench.deal([a, b], {"t": a})
    bench.claim(a, "t")
    bench.redeal([a, b], {"t": b})
    bench.ask(ReleaseRequest(member_id=a, tasks={"t": 1}, running=("t",)))
    bench.ask(ReleaseRequest(member_id=a, tasks={"t": 1}, running=("t",)))
    assert [each.owner for each in bench.claim(b, "t").answer.pending] == [a]
    bench.release(a, t=1)
    assert [each.token for each in bench.claim(b, "t").answer.granted] == [2]
