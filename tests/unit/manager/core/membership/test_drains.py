from __future__ import annotations

import pytest
from msgspec import UNSET

from manager.core.commands import DeleteGroup, DeleteTask, DrainMember, GetTaskStatus, SetTarget
from manager.core.stored_rows import OwnershipRow
from protocol.states import Target
from tests.unit.manager.core.bench import REBALANCE_MS, SESSION_MS, Ask, Bench


def drain(bench: Bench, member_id: str, *, draining: bool = True) -> Ask:
    return bench.ask(DrainMember(member_id=member_id, draining=draining))


def rejoin(bench: Bench, ids: list[str]) -> Ask:
    """Everybody rejoins and keeps what it owns; the leader's join."""
    asks = [
        bench.join(
            member_id,
            kind="sparkherd",
            metadata={"owned": {t: bench.owner(t)[1] for t in bench.group.tasks.owned_by(member_id)}},
        )
        for member_id in ids
    ]
    return next(ask for ask in asks if ask.answer.members)


def test_a_drain_rebalances_and_tells_the_leader(bench: Bench) -> None:
    """The mark comes with the members, and only with the one that is drained; a crash does not lose it."""
    a, b = ids = bench.herd(2, "t1", "t2")
    assert drain(bench, b).error == "NONE"
    assert bench.state == "PreparingRebalance"
    bench.crash()
    leader = rejoin(bench, ids)
    assert {m.member_id: m.draining for m in leader.answer.members} == {a: UNSET, b: True}


def test_a_drain_that_is_asked_for_twice_changes_nothing(bench: Bench) -> None:
    """No second rebalance."""
    a, b = ids = bench.herd(2, "t1", "t2")
    drain(bench, b)
    rejoin(bench, ids)
    bench.deal(ids, {"t1": a, "t2": a})
    assert drain(bench, b).error == "NONE"
    assert bench.state == "Stable"
    assert drain(bench, b, draining=False).error == "NONE"
    assert bench.state == "PreparingRebalance"
    leader = rejoin(bench, ids)
    assert {m.draining for m in leader.answer.members} == {UNSET}


def test_only_workers_of_a_sparkherd_group_are_drained(bench: Bench, member: str) -> None:
    """Others have no tasks, strangers are unknown, and so is a group that nobody has heard of."""
    assert drain(bench, member).error == "INVALID_REQUEST"
    assert drain(bench, "nobody").error == "UNKNOWN_MEMBER_ID"
    assert drain(Bench(), "nobody").error == "GROUP_ID_NOT_FOUND"


def test_a_drained_static_worker_that_comes_back_is_given_tasks_again(bench: Bench) -> None:
    """Its replacement is not drained, so the group rebalances instead of carrying on as it was."""
    bench.create("t1")
    bench.join(instance_id="s", kind="sparkherd")
    bench.pass_time()
    [old] = bench.group.members
    bench.deal([old], {"t1": old})
    drain(bench, old)
    rejoin(bench, [old])
    bench.deal([old], {})
    ask = bench.join(instance_id="s", kind="sparkherd")
    [told] = ask.answer.members
    assert (told.draining, ask.answer.skip_assignment) == (UNSET, False)


def lost_herd(delay_ms: int) -> tuple[Bench, list[str]]:
    """Two workers own a task each; the second one, `client_id` c as all here, falls silent."""
    bench = Bench(lost_task_delay_ms=delay_ms)
    ids = bench.herd(2, "t1", "t2")
    a = ids[0]
    bench.pass_time(SESSION_MS - 1)
    bench.heartbeat(a)
    bench.pass_time(1)
    assert set(bench.group.members) == {a}
    return bench, ids


def offered(leader: Ask) -> dict[str, object]:
    return {task.task: task.returns_to for task in leader.answer.tasks}


def test_without_a_delay_a_lost_task_is_offered_at_once() -> None:
    """The default."""
    bench, [a, _] = lost_herd(0)
    assert offered(rejoin(bench, [a])) == {"t1": UNSET, "t2": UNSET}


def test_a_lost_task_is_kept_for_its_worker_and_then_anybodys() -> None:
    """The leader does not hear of it until the delay is over; its status says what it waits for."""
    bench, [a, _] = lost_herd(5000)
    assert offered(rejoin(bench, [a])) == {"t1": UNSET}
    bench.deal([a], {"t1": a})
    status = bench.ask(GetTaskStatus(task="t2")).answer
    assert status.state == "UNASSIGNED"
    assert "kept for c" in status.cause
    bench.heartbeat(a)
    bench.pass_time(5050)
    assert bench.state == "PreparingRebalance"
    assert offered(rejoin(bench, [a])) == {"t1": UNSET, "t2": UNSET}


def test_a_lost_worker_that_returns_gets_its_tasks_back() -> None:
    """A newcomer with the same client id is the one they were kept for, even after a crash of the manager."""
    bench, [a, _] = lost_herd(5000)
    rejoin(bench, [a])
    bench.deal([a], {"t1": a})
    bench.crash()
    back = bench.join(kind="sparkherd")
    leader = rejoin(bench, [a])
    returned = back.answer.member_id
    assert offered(leader) == {"t1": UNSET, "t2": returned}
    bench.deal([a, returned], {"t1": a, "t2": returned})
    assert bench.claim(returned, "t2").answer.granted[0].token == 2
    assert bench.group.tasks.ownership["t2"].lost_by is None


def test_a_returned_worker_keeps_what_it_waits_to_be_granted() -> None:
    """Its claim may have to wait for a lease; whoever joins meanwhile does not make it lost again."""
    bench, [a, _] = lost_herd(900_000)
    back = bench.join(kind="sparkherd")
    rejoin(bench, [a])
    returned = back.answer.member_id
    bench.deal([a, returned], {"t1": a, "t2": returned})
    another = bench.join(kind="sparkherd", client_id="another")
    leader = rejoin(bench, [a, returned])
    assert another.error == "NONE"
    assert offered(leader) == {"t1": UNSET, "t2": UNSET}


def test_a_stopped_task_is_kept_for_nobody() -> None:
    """It has only to be settled, which any worker does."""
    bench = Bench(lost_task_delay_ms=900_000)
    a, b = bench.herd(2, "t1", "t2")
    bench.ask(SetTarget(task="t2", target=Target.STOPPED))
    bench.pass_time(SESSION_MS - 1)
    bench.heartbeat(a)
    bench.pass_time(1)
    assert b not in bench.group.members
    assert bench.group.tasks.ownership["t2"].lost_by is None


def test_after_a_crash_the_kept_tasks_have_the_full_delay_again() -> None:
    """As sessions have."""
    bench, [a, _] = lost_herd(5000)
    rejoin(bench, [a])
    bench.deal([a], {"t1": a})
    bench.pass_time(4000)
    bench.crash()
    bench.pass_time(4999)
    assert bench.state == "Stable"
    bench.pass_time(51)
    assert bench.state == "PreparingRebalance"


def test_who_leaves_is_not_expected_back() -> None:
    """Its tasks are anybody's at once."""
    bench = Bench(lost_task_delay_ms=REBALANCE_MS)
    a, b = bench.herd(2, "t1", "t2")
    bench.leave((b, None))
    assert offered(rejoin(bench, [a])) == {"t1": UNSET, "t2": UNSET}


@pytest.mark.parametrize("gone", ["group", "task"])
def test_what_is_deleted_is_kept_for_nobody(gone: str) -> None:
    """A task that is created again under the same name is a new one: any worker may have it at once."""
    bench = Bench(lost_task_delay_ms=900_000)
    bench.herd(1, "t")
    bench.pass_time(SESSION_MS)
    assert bench.state == "Empty"
    bench.ask(DeleteGroup() if gone == "group" else DeleteTask(task="t"))
    bench.coordinator.bury("g")
    bench.create("t")
    newcomer = bench.join(kind="sparkherd", client_id="another")
    bench.pass_time()
    assert offered(newcomer) == {"t": UNSET}


def test_a_task_kept_by_the_rows_of_before_is_freed_when_it_is_created_again() -> None:
    """Databases may hold such rows of deleted tasks; nobody waits for their workers any more."""
    bench = Bench(lost_task_delay_ms=900_000)
    row = OwnershipRow(group="g", task="t", token=7, lost_by="c")
    bench.store[type(row), row.key] = row
    bench.crash()
    bench.create("t")
    newcomer = bench.join(kind="sparkherd", client_id="another")
    bench.pass_time()
    assert offered(newcomer) == {"t": UNSET}
