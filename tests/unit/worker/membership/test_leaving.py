from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import (
    EngineEnd,
    LeaveRequest,
    LeaveResponse,
)
from tests.fakes.manager import failure
from tests.unit.worker.membership.bench import FAREWELL, LOSSES, ME, Bench, refused
from worker.membership.events import (
    Drain,
    LeaseExpired,
    Lose,
    Quit,
    Reason,
    Revoked,
    Send,
    Started,
    StopAsked,
)
from worker.membership.reactions import Reaction, RequestKind, reaction_to
from worker.membership.requests import Terms
from worker.membership.states import MemberState


def test_a_member_stops_releases_and_leaves(bench: Bench) -> None:
    """In this order; then it is done, whatever the leave was answered."""
    bench.to(MemberState.STABLE)
    bench.happen(StopAsked(FAREWELL))
    bench.happen(Revoked(bench.wanted(Drain)))
    leaver = bench.sent(LeaveRequest).members[0]
    assert (leaver.member_id, leaver.reason, leaver.stopped) == (ME, "stopped by the test", True)
    bench.answer(LeaveResponse(members=()))
    assert bench.effects == [FAREWELL]
    assert bench.state is MemberState.DOWN


def test_a_leave_tells_of_queries_that_did_not_stop_in_time(bench: Bench) -> None:
    """Whoever gets a task without a fence has to wait until they have."""
    bench.to(MemberState.STABLE)
    bench.happen(StopAsked(FAREWELL))
    bench.happen(Revoked(bench.wanted(Drain), stopped=False))
    assert not bench.sent(LeaveRequest).members[0].stopped


@pytest.mark.parametrize("engine", [*EngineEnd, None])
def test_who_leaves_in_haste_does_not_know_what_still_runs(engine: EngineEnd | None, bench: Bench) -> None:
    """A function that writes a batch in Python outlives the JVM that called it."""
    bench.to(MemberState.STABLE)
    bench.happen(StopAsked(Quit(Reason.ENGINE_DIED, "dead", engine), in_order=False))
    assert not bench.sent(LeaveRequest).members[0].stopped


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_leave_that_fails_holds_nobody_up(code: ErrorCode, bench: Bench) -> None:
    """The session ends by itself."""
    bench.to(MemberState.LEAVING)
    bench.happen(Revoked(bench.wanted(Drain)))
    bench.refuse(code)
    assert bench.effects == [FAREWELL]


def test_a_member_leaves_with_an_id_that_was_only_handed_out(bench: Bench) -> None:
    """Else the handed-out id would hold the next join phase up."""
    bench.happen(Started())
    bench.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id=ME)
    bench.happen(StopAsked(FAREWELL))
    bench.happen(Revoked(bench.wanted(Drain)))
    assert bench.sent(LeaveRequest).members[0].member_id == ME


def test_who_never_had_an_id_has_nothing_to_leave(bench: Bench) -> None:
    """Nobody would know who that was."""
    bench.happen(Started())
    bench.happen(StopAsked(FAREWELL))
    bench.happen(Revoked(bench.wanted(Drain)))
    assert bench.effects == [FAREWELL]


def test_a_static_member_goes_silent_instead_of_leaving() -> None:
    """So it finds its tasks when it is back within its session (KIP-345)."""
    bench = Bench(Terms("worker", 9000, 60_000, 3000, instance_id="a")).to(MemberState.LEAVING)
    bench.happen(Revoked(bench.wanted(Drain)))
    assert bench.effects == [FAREWELL]


def test_a_dead_engine_waits_for_nothing_but_the_leave(bench: Bench) -> None:
    """Its tasks are lost, its place is free at once."""
    bench.to(MemberState.STABLE)
    dead = Quit(Reason.ENGINE_DIED, "the engine died", EngineEnd.EXITED)
    bench.happen(StopAsked(dead, in_order=False))
    assert [type(effect) for effect in bench.effects] == [Lose, Send]
    [leaver] = bench.sent(LeaveRequest).members
    assert (leaver.reason, leaver.engine) == ("the engine died", EngineEnd.EXITED)
    bench.answer(LeaveResponse(members=()))
    assert bench.effects == [dead]


def test_the_engine_may_die_while_the_worker_is_leaving(bench: Bench) -> None:
    """Then nothing more is waited for."""
    bench.to(MemberState.LEAVING)
    bench.happen(StopAsked(Quit(Reason.ENGINE_DIED, "dead"), in_order=False))
    assert bench.sent(LeaveRequest)


def test_stopping_before_the_start_is_no_trouble(bench: Bench) -> None:
    """A signal may come while the engine is still on its way up."""
    assert bench.happen(StopAsked(FAREWELL)) == [FAREWELL]


@pytest.mark.parametrize("code", LOSSES)
def test_losing_the_membership_while_leaving_only_costs_the_tasks(code: ErrorCode, bench: Bench) -> None:
    """There is nothing to join again for."""
    bench.to(MemberState.LEAVING)
    assert [type(effect) for effect in bench.happen(refused(code, RequestKind.REPORT))] == [Lose]
    assert [type(effect) for effect in bench.happen(LeaseExpired())] == [Lose]
    assert bench.state is MemberState.LEAVING


def test_failures_are_values() -> None:
    """What the tables are keyed by comes out of a failure as it went in."""
    assert isinstance(failure(ErrorCode.STALE_TOKEN), Failure)
    assert reaction_to(ErrorCode.STALE_TOKEN, RequestKind.REPORT) is Reaction.STOP_QUERY
