from __future__ import annotations

import msgspec
import pytest

from manager.core.commands import StartRebalance
from protocol.messages.base import MAX_INT
from tests.unit.manager.core.bench import Bench


def test_a_first_contact_is_told_an_id_and_disturbs_nobody(bench: Bench, member: str) -> None:
    """KIP-394: MEMBER_ID_REQUIRED leaves the group's state and its members alone."""
    assert bench.announced_id().startswith("c-")
    assert bench.state == "Stable"
    assert bench.heartbeat(member).error == "NONE"


def test_generations_count_from_one(bench: Bench) -> None:
    """Each completed join phase adds exactly one."""
    [first] = bench.stable(None)
    newcomer = bench.join()
    rejoined = bench.join(first)
    assert (rejoined.answer.generation_id, newcomer.answer.generation_id) == (2, 2)
    assert [m.member_id for m in rejoined.answer.members] == [first, newcomer.answer.member_id]
    assert newcomer.answer.members == ()


def test_an_outstanding_id_blocks_early_completion_only(bench: Bench) -> None:
    """A handed-out id is waited for until it is forgotten after its session timeout."""
    [first] = bench.stable(None)
    newcomer = bench.join()
    bench.announced_id(session_ms=2000)
    rejoined = bench.join(first)
    assert rejoined.waits
    bench.pass_time(1999)
    assert rejoined.waits
    bench.pass_time(1)
    assert (rejoined.error, newcomer.error) == ("NONE", "NONE")


def test_the_deadline_does_not_wait_for_outstanding_ids(bench: Bench) -> None:
    """At the largest rebalance timeout the phase completes without those who never came."""
    bench.stable(None, rebalance_ms=3000)
    newcomer = bench.join(rebalance_ms=3000)
    bench.announced_id()
    bench.pass_time(2999)
    assert newcomer.waits
    bench.pass_time(1)
    assert newcomer.answer.generation_id == 2
    assert len(newcomer.answer.members) == 1


def test_absent_dynamic_members_are_removed_and_absent_static_ones_stay(bench: Bench) -> None:
    """KIP-345 at the deadline of the join phase."""
    dynamic, static = bench.stable(None, "s", rebalance_ms=3000, session_ms=30_000)
    newcomer = bench.join(rebalance_ms=3000)
    bench.pass_time(3000)
    assert newcomer.answer.leader_id == newcomer.answer.member_id
    assert [m.member_id for m in newcomer.answer.members] == [static, newcomer.answer.member_id]
    assert bench.heartbeat(dynamic).error == "UNKNOWN_MEMBER_ID"


def test_only_static_members_left_rearms_the_same_generation(bench: Bench) -> None:
    """Nobody rejoined but static members remain: wait another round, count nothing."""
    dynamic, _ = bench.stable(None, "s", rebalance_ms=3000, session_ms=30_000)
    bench.leave((dynamic, None))
    bench.pass_time(3000)
    assert (bench.state, bench.group.generation) == ("PreparingRebalance", 2)
    bench.pass_time(30_000)
    assert (bench.state, bench.group.generation) == ("Empty", 3)


def test_the_initial_delay_gathers_and_is_extended_while_members_come() -> None:
    """KIP-134: windows of D while somebody came in the last one, no longer than the rebalance timeout."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    first = bench.join(rebalance_ms=2500)
    bench.pass_time(500)
    second = bench.join(rebalance_ms=2500)
    bench.pass_time(500)
    third = bench.join(rebalance_ms=2500)
    bench.pass_time(1000)
    assert first.waits
    bench.pass_time(499)
    assert first.waits
    bench.pass_time(1)
    assert [ask.answer.generation_id for ask in (first, second, third)] == [1, 1, 1]


def test_the_opener_alone_waits_one_window() -> None:
    """Nobody else came: one window of D, even though everybody is there from the start."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    first = bench.join()
    bench.pass_time(999)
    assert first.waits
    bench.pass_time(1)
    assert first.answer.generation_id == 1


def test_leaving_does_not_cut_the_initial_delay_short() -> None:
    """The last member leaving within the window: Empty comes at the window's end, one generation up."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    member = bench.announced_id()
    parked = bench.join(member)
    assert bench.leave((member, None)).answer.members[0].error == "NONE"
    assert parked.error == "UNKNOWN_MEMBER_ID"
    assert bench.state == "PreparingRebalance"
    bench.pass_time(1000)
    assert (bench.state, bench.group.generation) == ("Empty", 1)


def test_the_deadline_is_that_of_the_moment_the_phase_began(bench: Bench) -> None:
    """A later join with a longer timeout does not move it."""
    bench.stable(None, rebalance_ms=2000)
    newcomer = bench.join(rebalance_ms=2000)
    bench.pass_time(1000)
    late = bench.join(rebalance_ms=50_000)
    bench.pass_time(1000)
    assert (newcomer.answer.generation_id, late.answer.generation_id) == (2, 2)


def test_a_retried_join_takes_the_place_over() -> None:
    """The earlier of two parked joins of one member is answered REBALANCE_IN_PROGRESS."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    member = bench.announced_id()
    earlier, later = bench.join(member), bench.join(member)
    assert earlier.error == "REBALANCE_IN_PROGRESS"
    bench.pass_time(1000)
    assert later.answer.member_id == member


@pytest.mark.parametrize("state", ["Stable", "AwaitingSync"])
def test_an_unchanged_follower_is_answered_at_once(bench: Bench, state: str) -> None:
    """No rebalance for a rejoin that says nothing new."""
    leader, follower = bench.stable(None, None)
    if state == "AwaitingSync":
        bench.join(leader)
        bench.join(follower)
        assert bench.state == state
    answer = bench.join(follower).answer
    assert (answer.generation_id, answer.leader_id, answer.members) == (bench.group.generation, leader, ())
    assert bench.state == state


def test_an_unchanged_leader_rebalances_in_stable_and_not_in_awaiting_sync(bench: Bench) -> None:
    """In AwaitingSync it gets the member list again, since the first answer may have been lost."""
    leader, follower = bench.stable(None, None)
    again = bench.join(leader)
    assert again.waits
    bench.join(follower)
    answer = bench.join(leader).answer
    assert [m.member_id for m in answer.members] == [leader, follower]
    assert bench.state == "AwaitingSync"


def test_changed_metadata_rebalances_and_a_changed_timeout_does_not(bench: Bench) -> None:
    """What the assignor may look at counts; a timeout is adopted in passing."""
    _, follower = bench.stable(None, None)
    assert bench.join(follower, session_ms=5000).error == "NONE"
    assert bench.group.members[follower].row.session_timeout_ms == 5000
    assert bench.join(follower, metadata={"new": 1}).waits
    assert bench.state == "PreparingRebalance"


def test_a_made_up_id_creates_no_group(bench: Bench) -> None:
    """UNKNOWN_MEMBER_ID, and nothing is there afterwards."""
    assert bench.join("nobody-1").error == "UNKNOWN_MEMBER_ID"
    assert bench.coordinator.names() == ()


@pytest.mark.parametrize("session_ms", [999, 1_800_001])
def test_session_bounds_are_inclusive_and_create_no_group(bench: Bench, session_ms: int) -> None:
    """Just outside is refused."""
    assert bench.join(session_ms=session_ms).error == "INVALID_SESSION_TIMEOUT"
    assert bench.coordinator.names() == ()
    inside = 1000 if session_ms < 1000 else 1_800_000
    assert bench.join(session_ms=inside, announced=True).error == "MEMBER_ID_REQUIRED"


def test_a_full_group_refuses_and_forgets_the_asking_id() -> None:
    """KIP-389: the refused one does not hold the group up."""
    bench = Bench(group_max_size=1)
    [member] = bench.stable(None)
    assert bench.join().error == "GROUP_MAX_SIZE_REACHED"
    other = Bench(group_max_size=1, initial_rebalance_delay_ms=1000)
    ids = [other.announced_id(), other.announced_id()]
    parked = other.join(ids[0])
    assert other.join(ids[1]).error == "GROUP_MAX_SIZE_REACHED"
    assert other.group.outstanding == {}
    other.pass_time(1000)
    assert parked.error == "NONE"
    assert bench.heartbeat(member).error == "NONE"


def test_the_protocol_with_most_votes_wins_and_the_leader_breaks_a_tie() -> None:
    """Votes are for the first candidate of each own list."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    asks = [bench.join(protocols=p) for p in [("a", "b"), ("b", "a"), ("b", "a"), ("c", "b", "a")]]
    bench.pass_time(60_000)
    assert {ask.answer.protocol_name for ask in asks} == {"b"}
    tied = Bench(initial_rebalance_delay_ms=1000)
    asks = [tied.join(protocols=p) for p in [("b", "a"), ("a", "b")]]
    tied.pass_time(60_000)
    assert {ask.answer.protocol_name for ask in asks} == {"b"}


def test_a_joiner_must_share_a_protocol_with_all_others(bench: Bench) -> None:
    """Its own old list does not count; an Empty group takes any list but an empty one."""
    assert bench.join(protocols=()).error == "INCONSISTENT_GROUP_PROTOCOL"
    [only] = bench.stable(None, protocols=("a",))
    assert bench.join(protocols=("b",)).error == "INCONSISTENT_GROUP_PROTOCOL"
    assert bench.join(kind="other", protocols=("a",)).error == "INCONSISTENT_GROUP_PROTOCOL"
    assert bench.join(only, protocols=("b",)).answer.protocol_name == "b"


def test_a_joiner_that_shares_a_protocol_with_some_only_is_refused() -> None:
    """What one of the others cannot speak is no protocol of the group's."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    for protocols in [("a", "b"), ("b",)]:
        bench.join(protocols=protocols)
    assert bench.join(protocols=("a",)).error == "INCONSISTENT_GROUP_PROTOCOL"
    assert bench.join(protocols=("a", "b")).waits


def test_a_leader_that_did_not_rejoin_is_replaced_by_the_first_that_did(bench: Bench) -> None:
    """Order of arrival decides."""
    leader, second, third = bench.stable(None, None, None, rebalance_ms=2000)
    rejoined = [bench.join(third, metadata=1, rebalance_ms=2000), bench.join(second, rebalance_ms=2000)]
    bench.pass_time(2000)
    assert {ask.answer.leader_id for ask in rejoined} == {second}
    assert leader not in bench.group.members


def test_the_history_says_why_and_how_long(bench: Bench) -> None:
    """The reason a member gives stands in the group's history, cut at 255 characters."""
    [first] = bench.stable(None)
    bench.join(reason="x" * 300)
    bench.pass_time(1500)
    bench.join(first)
    bench.settle(list(bench.group.members))
    newest = bench.group.rebalances[-1]
    assert (newest.generation_id, newest.duration_ms, newest.members) == (2, 1500, 2)
    assert len(newest.reason) == 255


def test_a_rebalance_timeout_beyond_the_bound_is_refused_by_name(bench: Bench) -> None:
    """A member that heartbeats and never rejoins would hold the group in its join phase for so long."""
    [first] = bench.stable(None)
    endless = bench.join(rebalance_ms=MAX_INT)
    assert endless.error == "INVALID_REQUEST"
    assert "rebalance_timeout_ms" in endless.answer.message
    assert "max_rebalance_timeout_ms" in endless.answer.message
    assert list(bench.group.members) == [first]
    assert bench.join(rebalance_ms=bench.settings.max_rebalance_timeout_ms).waits


@pytest.mark.parametrize("phase", ["join", "let go"])
def test_a_rebalance_timeout_of_before_is_held_to_the_bound(bench: Bench, phase: str) -> None:
    """Databases may hold members that were let in with a longer one: the group gets over them, too."""
    a, b = bench.herd(2, "t", "u")
    if phase == "let go":
        bench.redeal([a, b], {"t": b, "u": b})
    for member_id in (a, b):
        row = msgspec.structs.replace(bench.group.members[member_id].row, rebalance_timeout_ms=MAX_INT)
        bench.store[type(row), row.key] = row
    bench.crash()
    if phase == "join":
        bench.ask(StartRebalance())
    for _ in range(360):
        bench.pass_time(10_000 - 1)
        for member_id in (a, b):
            bench.heartbeat(member_id)
    bench.pass_time(360)
    assert (bench.owner("t")[0], bench.state) == (None, "Empty" if phase == "join" else "Stable")
