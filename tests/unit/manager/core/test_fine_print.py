from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from manager.core.commands import DeleteGroup
from manager.core.coordinator import GroupCoordinator
from manager.core.stored_rows import GroupRow, MemberRow, OwnershipRow, TaskRow, Unreadable, UnreadableError
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, DeleteOffsetsRequest, OffsetToCommit
from protocol.states import GroupState
from tests.unit.manager.core.bench import SESSION_MS, Bench

if TYPE_CHECKING:
    from manager.core.stored_rows import Row


def commit(bench: Bench) -> None:
    """An offset, from outside the group."""
    offsets = {"k": OffsetToCommit(encode_opaque(1))}
    assert bench.ask(CommitOffsetsRequest(member_id="", generation_id=-1, offsets=offsets)).error == "NONE"


def test_a_first_contact_is_checked_for_its_protocol_before_the_groups_size() -> None:
    """Protocol §2."""
    bench = Bench(group_max_size=1)
    bench.stable(None)
    assert bench.join(protocols=("other",)).error == "INCONSISTENT_GROUP_PROTOCOL"


def test_who_is_parked_may_retry_in_a_full_join_phase() -> None:
    """It takes no new room."""
    bench = Bench(group_max_size=1, initial_rebalance_delay_ms=1000)
    member = bench.announced_id()
    bench.join(member)
    assert bench.join(member).waits


def test_a_member_refused_in_a_full_join_phase_is_a_member_no_more() -> None:
    """The asking id is dropped, so nobody waits for it."""
    bench = Bench(group_max_size=2)
    first, second = bench.stable(None, None)
    bench.join(first, metadata=1)
    newcomer = bench.join()
    assert bench.join(second).error == "GROUP_MAX_SIZE_REACHED"
    assert second not in bench.group.members
    assert newcomer.error == "NONE"


def test_the_largest_rebalance_timeout_is_the_deadline(bench: Bench) -> None:
    """Not the smallest."""
    bench.stable(None, rebalance_ms=2000, session_ms=60_000)
    newcomer = bench.join(rebalance_ms=5000)
    bench.pass_time(4999)
    assert newcomer.waits
    bench.pass_time(1)
    assert newcomer.error == "NONE"


def test_a_rearmed_join_phase_has_a_deadline_of_its_own(bench: Bench) -> None:
    """Whoever comes after nobody did waits for that."""
    dynamic, _ = bench.stable(None, "s", rebalance_ms=3000, session_ms=60_000)
    bench.leave((dynamic, None))
    bench.pass_time(4000)
    newcomer = bench.join(rebalance_ms=3000)
    bench.pass_time(1999)
    assert newcomer.waits
    bench.pass_time(1)
    assert newcomer.error == "NONE"


def test_a_returning_static_member_keeps_its_place_in_the_line(bench: Bench) -> None:
    """The first that came stays the first."""
    _, second, third = bench.stable("a", "b", "c")
    back = bench.join(instance_id="a").answer.member_id
    assert list(bench.group.members) == [back, second, third]


def test_a_returning_leader_that_came_late_leads_on_after_a_crash(bench: Bench) -> None:
    """Not the first in the line."""
    bench.stable("a", "b", rebalance_ms=2000, session_ms=60_000)
    bench.join(bench.group.statics["b"], "b", metadata=1, rebalance_ms=2000, session_ms=60_000)
    bench.pass_time(2000)
    bench.settle([bench.group.statics["b"]])
    back = bench.join(instance_id="b", metadata=1, rebalance_ms=2000, session_ms=60_000).answer
    assert (back.leader_id, bench.state) == (back.member_id, "Stable")
    bench.crash()
    assert bench.group.leader_id == back.member_id


def test_a_returning_static_member_has_a_session(bench: Bench) -> None:
    """It goes when it falls silent."""
    bench.stable("a")
    bench.pass_time(SESSION_MS - 1)
    bench.join(instance_id="a")
    bench.pass_time(SESSION_MS - 1)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


@pytest.mark.parametrize("beats", [0, 1])
def test_a_parked_member_does_not_expire(bench: Bench, beats: int) -> None:
    """However long the others take; a heartbeat beside its join does not put it on the clock again."""
    first, second = bench.stable(None, None)
    parked = bench.join(first, metadata=1)
    for _ in range(beats):
        assert bench.heartbeat(first).error == "REBALANCE_IN_PROGRESS"
    for _ in range(4):
        bench.pass_time(SESSION_MS - 1)
        bench.heartbeat(second)
    assert parked.waits
    assert first in bench.group.members


def test_a_retry_does_not_prolong_the_time_of_a_never_confirmed_member() -> None:
    """`new_member_timeout_ms` counts from its first join."""
    bench = Bench(new_member_timeout_ms=5000)
    bench.stable(None, session_ms=60_000)
    member = bench.announced_id()
    bench.join(member)
    bench.pass_time(3000)
    retry = bench.join(member)
    bench.pass_time(2000)
    assert retry.error == "UNKNOWN_MEMBER_ID"


def test_a_join_that_was_given_up_is_nobodys_presence(bench: Bench) -> None:
    """The join phase waits for the member, as if it had never asked."""
    first, second = bench.stable(None, None)
    bench.disconnect(bench.join(first, metadata=1))
    parked = bench.join(second)
    assert parked.waits
    assert bench.join(first).error == "NONE"


def test_a_join_given_up_after_a_heartbeat_puts_the_member_on_its_full_clock(bench: Bench) -> None:
    """It has spoken since, so it is alive; but it is parked no more."""
    first, _ = bench.stable(None, None)
    join = bench.join(first, metadata=1)
    bench.heartbeat(first)
    bench.disconnect(join)
    bench.pass_time(SESSION_MS - 1)
    assert first in bench.group.members
    bench.pass_time(1)
    assert first not in bench.group.members


@pytest.mark.parametrize("keeps", ["an offset", "a task"])
def test_an_empty_group_that_keeps_something_keeps_its_generation(keeps: str) -> None:
    """However long ago its last member left."""
    bench = Bench(group_retention_ms=5000)
    [member] = bench.stable(None)
    bench.leave((member, None))
    if keeps == "an offset":
        commit(bench)
    else:
        bench.create("t")
    bench.pass_time(50_000)
    assert bench.group.generation == 2


def test_a_retention_that_runs_out_in_a_live_group_forgets_nothing() -> None:
    """It was Empty once."""
    bench = Bench(group_retention_ms=5000)
    [member] = bench.stable(None)
    bench.leave((member, None))
    bench.stable(None)
    bench.pass_time(5000)
    assert (bench.state, bench.group.generation) == ("Stable", 3)


def test_a_group_expires_after_its_last_offset_was_deleted() -> None:
    """Its retention counts from then."""
    bench = Bench(group_retention_ms=5000)
    [member] = bench.stable(None)
    bench.leave((member, None))
    commit(bench)
    bench.pass_time(50_000)
    bench.ask(DeleteOffsetsRequest(keys=("k",)))
    bench.pass_time(4999)
    assert bench.coordinator.names() == ("g",)
    bench.pass_time(1)
    assert bench.coordinator.names() == ()


def test_a_deleted_group_takes_its_offsets_along(bench: Bench) -> None:
    """Nothing of it is stored any more."""
    commit(bench)
    assert bench.ask(DeleteGroup()).error == "NONE"
    assert bench.store == {}


def test_tokens_go_on_counting_after_their_group_was_deleted(bench: Bench, worker: str) -> None:
    """A name used again is another task, and the old one's query is fenced."""
    bench.leave((worker, None))
    bench.ask(DeleteGroup())
    bench.coordinator.bury("g")
    [again] = bench.herd(1, "t")
    assert bench.owner("t")[:2] == (again, 2)


def test_the_stored_history_is_bounded_too(bench: Bench, member: str) -> None:
    """What is not shown any more is not kept."""
    for _ in range(105):
        bench.rejoin([member])
        bench.settle([member])
    assert sum(kind.__name__ == "RebalanceRow" for kind, _ in bench.store) == 100


def test_a_protocol_that_one_member_does_not_know_is_no_candidate() -> None:
    """However many prefer it."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    asks = [bench.join(protocols=p) for p in [("a", "b"), ("a", "b"), ("b",)]]
    bench.pass_time(60_000)
    assert {ask.answer.protocol_name for ask in asks} == {"b"}


def test_a_restored_member_has_a_full_new_session_and_no_more(bench: Bench) -> None:
    """Whoever went with the manager is found out."""
    bench.stable(None)
    bench.pass_time(SESSION_MS - 1)
    bench.crash()
    bench.pass_time(SESSION_MS - 1)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_restored_join_phase_has_a_deadline(bench: Bench) -> None:
    """Those who do not come to it are removed, though their sessions are longer."""
    first, second = bench.stable(None, None, rebalance_ms=3000, session_ms=60_000)
    bench.leave((second, None))
    bench.crash()
    bench.pass_time(2999)
    assert first in bench.group.members
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_group_with_a_row_that_makes_no_sense_is_not_taken_up(bench: Bench) -> None:
    """Neither with it nor without it; the row is named."""
    bench.stable(None)
    torn = Unreadable(
        group="g",
        place="table tasks, group g, task t",
        why="target: 'SIDEWAYS'",
        kind=TaskRow,
        stored_key=("g", "t"),
    )
    fresh = GroupCoordinator(bench.settings, lambda: "id")
    with pytest.raises(UnreadableError, match="table tasks, group g, task t: target: 'SIDEWAYS'"):
        fresh.load("g", [*bench.store.values(), torn], bench.instant)
    assert fresh.names() == ()


@pytest.mark.parametrize("kind", [MemberRow, TaskRow])
def test_a_group_whose_own_row_is_gone_is_not_taken_up(bench: Bench, kind: type[Row]) -> None:
    """Its generation and revision would begin again, and its state would be Empty with members in it."""
    bench.create("t")
    bench.stable(None)
    left = [row for row in bench.store.values() if isinstance(row, kind)]
    fresh = GroupCoordinator(bench.settings, lambda: "id")
    with pytest.raises(UnreadableError, match=r"^table groups, group g: there is no such row") as refusal:
        fresh.load("g", left, bench.instant)
    assert (refusal.value.row.kind, refusal.value.row.stored_key) == (GroupRow, ("g",))
    assert fresh.names() == ()


@pytest.mark.parametrize("state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.EMPTY])
def test_a_group_whose_tasks_belong_to_nobody_it_knows_is_not_taken_up(
    bench: Bench, state: GroupState
) -> None:
    """The row of a member was deleted: its tasks would be its own for ever, and nobody would release them."""
    owner, _ = bench.herd(2, "t", "u")
    rows = [row for row in bench.store.values() if row.key != ("g", owner)]
    header = msgspec.structs.replace(
        bench.group.header,
        rebalance_on_load=state is GroupState.PREPARING_REBALANCE,
        leader_id=None if state is GroupState.EMPTY else owner,
    )
    assert header.state is state
    rows.append(header)
    fresh = GroupCoordinator(bench.settings, lambda: "id")
    with pytest.raises(UnreadableError, match=r"^table ownership, group g, task t: owner: .* has no row"):
        fresh.load("g", rows, bench.instant)
    assert fresh.names() == ()


def test_what_outlives_a_group_is_taken_up_without_its_row(bench: Bench, worker: str) -> None:
    """Tokens go on counting after the group was deleted."""
    bench.leave((worker, None))
    left = [row for row in bench.store.values() if isinstance(row, OwnershipRow)]
    fresh = GroupCoordinator(bench.settings, lambda: "id")
    fresh.load("g", left, bench.instant)
    group = fresh.group("g")
    assert group is not None
    assert list(group.tasks.ownership) == ["t"]


def test_only_the_leader_is_told_the_tasks(bench: Bench) -> None:
    """The others have nothing to decide."""
    bench.create("t")
    leader, follower = bench.worker_group(2)
    told = {member: bench.join(member, kind="sparkherd").answer.tasks for member in (leader, follower)}
    assert [task.task for task in told[leader]] == ["t"]
    assert told[follower] is msgspec.UNSET
