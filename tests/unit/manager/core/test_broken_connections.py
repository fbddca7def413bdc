from __future__ import annotations

from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit
from tests.unit.manager.core.bench import Bench


def test_a_parked_join_of_a_stranger_is_withdrawn_and_its_id_expected_again() -> None:
    """The member goes with it; a retry under the same id is welcome."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    member = bench.announced_id()
    parked = bench.join(member)
    bench.disconnect(parked)
    assert bench.group.members == {}
    assert list(bench.group.outstanding) == [member]
    again = bench.join(member)
    bench.pass_time(1000)
    assert again.answer.member_id == member


def test_a_confirmed_member_has_the_grace_period_left() -> None:
    """A killed process is noticed in a second."""
    bench = Bench()
    [member] = bench.stable(None)
    held = bench.heartbeat(member, wait_ms=3000)
    bench.pass_time(100)
    bench.disconnect(held)
    bench.pass_time(999)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_later_request_restores_the_session() -> None:
    """It was the connection that died, not the member."""
    bench = Bench()
    [member] = bench.stable(None)
    bench.disconnect(bench.heartbeat(member, wait_ms=3000))
    bench.pass_time(500)
    assert bench.heartbeat(member).error == "NONE"
    bench.pass_time(9_999)
    assert bench.state == "Stable"


def test_a_connection_that_closes_after_a_later_request_counts_for_nothing() -> None:
    """Events may arrive late; the member has spoken since."""
    bench = Bench()
    [member] = bench.stable(None)
    parked = bench.heartbeat(member, wait_ms=3000)
    offsets = {"k": OffsetToCommit(encode_opaque(1))}
    bench.ask(CommitOffsetsRequest(member_id=member, generation_id=1, offsets=offsets))
    bench.disconnect(parked)
    bench.pass_time(5_000)
    assert bench.state == "Stable"


def test_a_report_does_not_vouch_for_a_connection_that_closes_after_it() -> None:
    """Workers report all the while; one that is killed a moment later is noticed in a second all the same."""
    bench = Bench()
    [member] = bench.stable(None)
    held = bench.heartbeat(member, wait_ms=3000)
    bench.report(member, "unknown", 1)
    bench.disconnect(held)
    bench.pass_time(999)
    assert bench.state == "Stable"
    bench.report(member, "unknown", 1)
    bench.pass_time(9_999)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_held_heartbeat_that_was_given_up_has_no_deadline_any_more() -> None:
    """The member may leave before it would have been answered."""
    bench = Bench()
    [member] = bench.stable(None)
    bench.disconnect(bench.heartbeat(member, wait_ms=3000))
    bench.leave((member, None))
    bench.pass_time(3_000)
    assert bench.state == "Empty"


def test_static_members_are_spared() -> None:
    """They may come back on another connection in their own time."""
    bench = Bench()
    [member] = bench.stable("s")
    bench.disconnect(bench.heartbeat(member, instance_id="s", wait_ms=3000))
    bench.pass_time(5_000)
    assert bench.state == "Stable"


def test_the_grace_period_never_lengthens_a_session() -> None:
    """Less than a second was left: less than a second it stays."""
    bench = Bench(disconnect_grace_ms=5_000)
    [member] = bench.stable(None, session_ms=3_000)
    held = bench.heartbeat(member, wait_ms=1_000)
    bench.pass_time(500)
    bench.disconnect(held)
    bench.pass_time(2_499)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_parked_sync_given_up_does_not_stop_the_leader() -> None:
    """The group gets its assignment; the one that is gone is removed after the grace period."""
    bench = Bench()
    leader, follower = bench.stable(None, None)
    bench.rejoin([leader, follower])
    bench.disconnect(bench.sync(follower))
    assert bench.sync(leader, given={}).error == "NONE"
    bench.pass_time(1_000)
    assert follower not in bench.group.members


def test_a_never_confirmed_member_does_not_stay_parked_for_ever() -> None:
    """`new_member_timeout_ms` is its limit."""
    bench = Bench(new_member_timeout_ms=5_000)
    [first] = bench.stable(None, session_ms=60_000)
    newcomer = bench.join()
    bench.pass_time(4_999)
    assert newcomer.waits
    bench.pass_time(1)
    assert newcomer.error == "UNKNOWN_MEMBER_ID"
    assert first in bench.group.members
