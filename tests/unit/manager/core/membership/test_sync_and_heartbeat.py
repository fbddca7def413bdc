from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench


def test_followers_wait_for_the_leader_and_a_missing_assignment_is_null(bench: Bench) -> None:
    """Entries for strangers are ignored, whoever is not named gets null."""
    leader, follower = bench.stable(None, None)
    bench.rejoin([leader, follower])
    waiting = bench.sync(follower, given={follower: "a follower's list is ignored"})
    assert waiting.waits
    done = bench.sync(leader, given={leader: [1, 2], "stranger": 3})
    assert (bytes(done.answer.assignment), bytes(waiting.answer.assignment)) == (b"[1,2]", b"null")
    assert bench.state == "Stable"


def test_a_sync_in_stable_repeats_what_is_stored(bench: Bench) -> None:
    """A late list of the leader changes nothing."""
    [leader] = bench.stable(None)
    assert (
        bytes(bench.sync(leader, given={leader: "late"}).answer.assignment)
        == b'{"for":"%s"}' % leader.encode()
    )


def test_a_sync_checks_member_generation_and_protocol_in_this_order(bench: Bench) -> None:
    """UNKNOWN_MEMBER_ID beats ILLEGAL_GENERATION beats INCONSISTENT_GROUP_PROTOCOL."""
    [leader] = bench.stable(None)
    assert bench.sync("x", 9, protocol_type="no").error == "UNKNOWN_MEMBER_ID"
    assert bench.sync(leader, 2, protocol_type="no").error == "ILLEGAL_GENERATION"
    assert bench.sync(leader, 1, protocol_type="no").error == "INCONSISTENT_GROUP_PROTOCOL"
    assert bench.sync(leader, 1, protocol_name="no").error == "INCONSISTENT_GROUP_PROTOCOL"


def test_a_rebalance_answers_parked_syncs(bench: Bench) -> None:
    """Nobody waits for an assignment that will not come."""
    leader, follower = bench.stable(None, None)
    bench.rejoin([leader, follower])
    waiting = bench.sync(follower)
    bench.join()
    assert waiting.error == "REBALANCE_IN_PROGRESS"


def test_those_who_never_sync_are_removed(bench: Bench) -> None:
    """Within the largest rebalance timeout of the completion; the others go on without them."""
    leader, follower = bench.stable(None, None, session_ms=100_000)
    bench.rejoin([leader, follower], session_ms=100_000)
    bench.sync(leader, given={})
    bench.pass_time(59_999)
    assert follower in bench.group.members
    bench.pass_time(1)
    assert follower not in bench.group.members
    assert bench.state == "PreparingRebalance"


def test_heartbeats_in_every_state(bench: Bench, member: str) -> None:
    """REBALANCE_IN_PROGRESS renews the session all the same; a wrong generation does not."""
    assert bench.heartbeat(member).error == "NONE"
    assert bench.heartbeat(member, 0).error == "ILLEGAL_GENERATION"
    bench.join()
    bench.pass_time(9_000)
    assert bench.heartbeat(member).error == "REBALANCE_IN_PROGRESS"
    bench.pass_time(9_000)
    assert member in bench.group.members
    assert bench.heartbeat(member, 7).error == "ILLEGAL_GENERATION"
    bench.pass_time(1_000)
    assert member not in bench.group.members


def test_a_session_ends_after_silence_of_exactly_its_length(bench: Bench, member: str) -> None:
    """The last one out makes the group Empty, one generation up."""
    bench.pass_time(9_999)
    assert bench.heartbeat(member).error == "NONE"
    bench.pass_time(9_999)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert (bench.state, bench.group.generation) == ("Empty", 2)


def test_a_held_heartbeat_ends_with_its_wait_capped_at_a_third_of_the_session(bench: Bench) -> None:
    """The session counts from its arrival, not from its answer."""
    [member] = bench.stable(None, session_ms=9000)
    held = bench.heartbeat(member, wait_ms=60_000)
    bench.pass_time(2_999)
    assert held.waits
    bench.pass_time(1)
    assert held.error == "NONE"
    bench.pass_time(5_999)
    assert member in bench.group.members
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_held_heartbeat_hears_of_a_rebalance_at_once(bench: Bench, member: str) -> None:
    """One network trip, not the next heartbeat."""
    held = bench.heartbeat(member, wait_ms=3000)
    bench.join()
    assert held.error == "REBALANCE_IN_PROGRESS"


def test_a_newer_heartbeat_ends_the_held_one(bench: Bench, member: str) -> None:
    """Each is answered once."""
    held = bench.heartbeat(member, wait_ms=3000)
    newer = bench.heartbeat(member, wait_ms=3000)
    assert (held.error, newer.waits) == ("NONE", True)


def test_a_batch_leave_is_one_rebalance_and_every_entry_has_its_error(bench: Bench) -> None:
    """In request order; the last one out empties the group."""
    ids = bench.stable(None, None)
    outcome = bench.leave((ids[0], None), ("nobody", None), (ids[1], None), (ids[1], None)).answer.members
    assert [m.error for m in outcome] == ["NONE", "UNKNOWN_MEMBER_ID", "NONE", "UNKNOWN_MEMBER_ID"]
    assert (bench.state, bench.group.generation) == ("Empty", 3)


def test_leaving_gives_an_outstanding_id_back(bench: Bench) -> None:
    """Whoever waited for it goes on."""
    [first] = bench.stable(None)
    newcomer, expected = bench.join(), bench.announced_id()
    rejoined = bench.join(first)
    assert rejoined.waits
    assert bench.leave((expected, None)).answer.members[0].error == "NONE"
    assert (rejoined.error, newcomer.error) == ("NONE", "NONE")


def test_a_held_heartbeat_that_has_not_seen_a_given_task_is_answered_at_once(bench: Bench) -> None:
    """However long ago the task was changed: what counts is the revision the member says it has seen."""
    bench.create("t")
    [worker] = bench.worker_group(1)
    bench.deal([worker], {"t": worker})
    behind = bench.heartbeat(worker, wait_ms=1000, tasks_revision=0)
    assert behind.answer.tasks_revision == 1
    assert bench.heartbeat(worker, wait_ms=1000, tasks_revision=1).waits


def test_numbers_that_have_a_code_of_their_own_are_refused_with_it(bench: Bench, member: str) -> None:
    """However far out they are."""
    assert bench.join(session_ms=-1).error == "INVALID_SESSION_TIMEOUT"
    assert bench.heartbeat(member, generation=-5).error == "ILLEGAL_GENERATION"
