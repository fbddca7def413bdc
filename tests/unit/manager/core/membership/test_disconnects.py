from __future__ import annotations

import pytest

from manager.core import sessions
from manager.core.connections import QUIET_MS
from manager.core.member import Connection
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit
from tests.unit.manager.core.bench import SESSION_MS, Bench


def left_ms(bench: Bench, member: str) -> int:
    """How long it may still be silent."""
    deadline = bench.group.timers.deadline(sessions.key(bench.group.members[member]))
    assert deadline is not None
    return deadline - bench.now


def kept_by(bench: Bench, member: str, *, instance_id: str | None = None) -> Connection:
    """A connection that has carried two requests of `member`, answered both."""
    before, bench.over = bench.over, Connection()
    for _ in range(2):
        assert bench.heartbeat(member, instance_id=instance_id).error == "NONE"
    kept, bench.over = bench.over, before
    return kept


def test_a_process_killed_between_an_answer_and_its_next_request_has_the_grace_period(
    bench: Bench, worker: str
) -> None:
    """Nothing of it waits then; that it closes what it has kept says as much."""
    bench.over = Connection()
    bench.heartbeat(worker)
    bench.claim(worker, "t")
    bench.close(bench.over)
    bench.pass_time(999)
    assert bench.owner("t")[0] == worker
    bench.pass_time(1)
    assert bench.owner("t")[0] is None


def test_a_connection_for_each_request_says_nothing_of_the_member(bench: Bench, member: str) -> None:
    """It is closed after its answer, however often that is."""
    for _ in range(3):
        bench.disconnect(bench.heartbeat(member))
    assert left_ms(bench, member) == SESSION_MS


def test_a_connection_for_each_request_says_nothing_when_it_closes_after_the_next_has_come_either(
    bench: Bench, member: str
) -> None:
    """Requests overlap; the latest connection must not stand in for one that was never kept."""
    first, second = bench.heartbeat(member), bench.heartbeat(member)
    bench.disconnect(first)
    bench.disconnect(second)
    assert left_ms(bench, member) == SESSION_MS


def test_of_several_connections_the_last_one_counts(bench: Bench, member: str) -> None:
    """A pool drops what it has too many of; a process that dies closes them all, one by one."""
    first, second = kept_by(bench, member), kept_by(bench, member)
    bench.close(second)
    assert left_ms(bench, member) == SESSION_MS
    bench.close(first)
    assert left_ms(bench, member) == 1000
    bench.heartbeat(member)
    assert left_ms(bench, member) == SESSION_MS


def test_a_worker_killed_while_it_has_nothing_to_say_is_noticed_whichever_connection_closes_first() -> None:
    """Its heartbeat has been held for a while, and so long nothing has gone over the other one."""
    for heartbeats_first in (True, False):
        bench = Bench()
        [member] = bench.stable(None, session_ms=30_000)
        kept = kept_by(bench, member)
        held = bench.heartbeat(member, wait_ms=10_000)
        bench.pass_time(QUIET_MS + 500)
        closing = [held.connection, kept] if heartbeats_first else [kept, held.connection]
        bench.close(closing[0])
        assert left_ms(bench, member) == 30_000 - QUIET_MS - 500
        bench.close(closing[1])
        assert left_ms(bench, member) == 1000


@pytest.mark.parametrize("what", ["heartbeat", "claim", "sync", "join"])
def test_who_waits_on_another_connection_is_there(bench: Bench, what: str) -> None:
    """That one is open."""
    a, b = bench.herd(2, "t")
    bench.redeal([a, b], {"t": b})
    kept = kept_by(bench, b)
    if what == "sync":
        bench.rejoin([a, b], kind="sparkherd", metadata={"owned": {}})
    waits = {
        "heartbeat": lambda: bench.heartbeat(b, wait_ms=3000),
        "claim": lambda: bench.claim(b, "t", wait_ms=3000),
        "sync": lambda: bench.sync(b),
        "join": lambda: bench.join(b, kind="sparkherd"),
    }[what]()
    member = bench.group.members[b]
    member.heard_over = None
    before = bench.group.timers.deadline(sessions.key(member))
    bench.close(kept)
    assert waits.waits
    assert bench.group.timers.deadline(sessions.key(member)) == before


def test_the_connection_of_the_latest_request_stands_in_and_then_counts(bench: Bench, member: str) -> None:
    """A client may go on over a new one; if that closes as well, the process is gone."""
    kept = kept_by(bench, member)
    latest = bench.heartbeat(member)
    bench.close(kept)
    assert left_ms(bench, member) == SESSION_MS
    bench.disconnect(latest)
    assert left_ms(bench, member) == 1000


def test_a_connection_that_the_manager_closed_says_nothing(bench: Bench, member: str) -> None:
    """Nor is it there any more: the next one that the member closes is its last."""
    first, second = kept_by(bench, member), kept_by(bench, member)
    bench.close(second, by_peer=False)
    bench.close(second)
    assert left_ms(bench, member) == SESSION_MS
    bench.close(first)
    assert left_ms(bench, member) == 1000


def test_a_held_heartbeat_goes_with_a_connection_that_the_manager_closed(bench: Bench, member: str) -> None:
    """It is given up, and the member has its session."""
    held = bench.heartbeat(member, wait_ms=3000)
    bench.disconnect(held, by_peer=False)
    assert not held.waits
    assert left_ms(bench, member) == SESSION_MS


def test_a_connection_closed_after_a_silence_was_just_not_needed(bench: Bench, member: str) -> None:
    """A client may have less to say than its pool has patience with what is idle."""
    kept, other = kept_by(bench, member), kept_by(bench, member)
    bench.pass_time(QUIET_MS + 1)
    bench.close(kept)
    bench.close(other)
    assert left_ms(bench, member) == SESSION_MS - QUIET_MS - 1


def test_a_connection_of_several_members_is_none_of_theirs(bench: Bench) -> None:
    """It leads to a proxy, or to a process that is more than one member."""
    first, second = bench.stable(None, None)
    bench.over = Connection()
    for member in (first, first, second, second):
        bench.heartbeat(member)
    bench.close(bench.over)
    assert {left_ms(bench, member) for member in (first, second)} == {SESSION_MS}


def test_what_waits_on_a_connection_of_several_members_is_given_up(bench: Bench) -> None:
    """As on any other."""
    first, second = bench.stable(None, None)
    bench.over = Connection()
    bench.heartbeat(first)
    held = bench.heartbeat(second, wait_ms=3000)
    bench.close(bench.over)
    assert not held.waits
    assert (left_ms(bench, first), left_ms(bench, second)) == (SESSION_MS, 1000)


@pytest.mark.parametrize("way", ["a new id", "a crash", "a restored group"])
def test_a_connection_outlives_a_member(bench: Bench, way: str) -> None:
    """It belongs to the member that it carries now."""
    [member] = bench.stable(None)
    kept = kept_by(bench, member)
    if way == "a new id":
        bench.leave((member, None))
        [member] = bench.stable(None)
    elif way == "a crash":
        bench.crash()
    else:
        bench.reload()
    bench.over = kept
    for _ in range(2):
        bench.heartbeat(member)
    bench.close(kept)
    assert left_ms(bench, member) == 1000


def test_what_waited_in_a_group_of_before_waits_no_longer(bench: Bench, member: str) -> None:
    """The manager lost the group and has read it again; the connection went on."""
    bench.over = Connection()
    bench.heartbeat(member, wait_ms=3000)
    bench.reload()
    bench.heartbeat(member)
    bench.close(bench.over)
    assert left_ms(bench, member) == SESSION_MS


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


def test_a_confirmed_member_has_the_grace_period_left(bench: Bench, member: str) -> None:
    """A killed process is noticed in a second."""
    held = bench.heartbeat(member, wait_ms=3000)
    bench.pass_time(100)
    bench.disconnect(held)
    bench.pass_time(999)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_later_request_restores_the_session(bench: Bench, member: str) -> None:
    """It was the connection that died, not the member."""
    bench.disconnect(bench.heartbeat(member, wait_ms=3000))
    bench.pass_time(500)
    assert bench.heartbeat(member).error == "NONE"
    bench.pass_time(9_999)
    assert bench.state == "Stable"


def test_a_connection_that_closes_after_a_later_request_counts_for_nothing(bench: Bench, member: str) -> None:
    """Events may arrive late; the member has spoken since."""
    parked = bench.heartbeat(member, wait_ms=3000)
    offsets = {"k": OffsetToCommit(encode_opaque(1))}
    bench.ask(CommitOffsetsRequest(member_id=member, generation_id=1, offsets=offsets))
    bench.disconnect(parked)
    bench.pass_time(5_000)
    assert bench.state == "Stable"


def test_a_report_does_not_vouch_for_a_connection_that_closes_after_it(bench: Bench, member: str) -> None:
    """Workers report all the while; one that is killed a moment later is noticed in a second all the same."""
    held = bench.heartbeat(member, wait_ms=3000)
    bench.over = Connection()
    bench.report(member, "unknown", 1)
    bench.disconnect(held)
    assert left_ms(bench, member) == SESSION_MS
    bench.close(bench.over)
    assert left_ms(bench, member) == 1000
    bench.over = None
    bench.pass_time(999)
    assert bench.state == "Stable"
    bench.report(member, "unknown", 1)
    bench.pass_time(9_999)
    assert bench.state == "Stable"
    bench.pass_time(1)
    assert bench.state == "Empty"


def test_a_held_heartbeat_that_was_given_up_has_no_deadline_any_more(bench: Bench, member: str) -> None:
    """The member may leave before it would have been answered."""
    bench.disconnect(bench.heartbeat(member, wait_ms=3000))
    bench.leave((member, None))
    bench.pass_time(3_000)
    assert bench.state == "Empty"


def test_static_members_are_spared(bench: Bench) -> None:
    """They may come back on another connection in their own time."""
    [member] = bench.stable("s")
    bench.disconnect(bench.heartbeat(member, instance_id="s", wait_ms=3000))
    bench.close(kept_by(bench, member, instance_id="s"))
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


def test_a_parked_sync_given_up_does_not_stop_the_leader(bench: Bench) -> None:
    """The group gets its assignment; the one that is gone is removed after the grace period."""
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
