from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages.membership import (
    HeartbeatResponse,
    JoinRequest,
    SyncRequest,
)
from tests.fakes.manager import failure
from tests.unit.worker.membership.bench import LOSSES, ME, TROUBLE, Bench, assignments, joined, refused
from worker.membership.events import (
    Answered,
    Assign,
    Assigned,
    Identity,
    Lose,
    Quit,
    Reason,
    Send,
    Started,
    Wait,
)
from worker.membership.reactions import FATAL, TABLE, Reaction, RequestKind, reaction_to
from worker.membership.states import MemberState


def test_every_code_of_the_table_is_there_once_for_a_request() -> None:
    """No two rows say different things of the same answer."""
    pairs = [(code, asked) for row in TABLE for code in row.codes for asked in row.to]
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize(
    "asked", [RequestKind.HEARTBEAT, RequestKind.JOIN, RequestKind.SYNC, RequestKind.CLAIM]
)
def test_a_rebalance_makes_the_member_rejoin(asked: RequestKind) -> None:
    """REBALANCE_IN_PROGRESS to a heartbeat, join, sync or claim."""
    assert reaction_to(ErrorCode.REBALANCE_IN_PROGRESS, asked) is Reaction.REJOIN


def test_a_heartbeat_told_of_a_rebalance_rejoins_at_once_and_loses_nothing(bench: Bench) -> None:
    """Id and generation are kept, tasks run on."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.sent(JoinRequest).member_id == ME
    assert not bench.wants(Lose)
    assert bench.identity == Identity(ME, 3)


def test_a_sync_told_of_a_rebalance_rejoins_at_once(bench: Bench) -> None:
    """Id kept."""
    bench.to(MemberState.SYNCING)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.sent(JoinRequest).member_id == ME


def test_a_join_told_of_a_rebalance_rejoins_after_a_moment(bench: Bench) -> None:
    """Id kept; two requests in one another's place do not spin."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.wait()
    assert bench.sent(JoinRequest).member_id == ME


@pytest.mark.parametrize("state", [MemberState.JOINING, MemberState.SYNCING, MemberState.STABLE])
@pytest.mark.parametrize(("code", "kept"), LOSSES.items())
def test_a_lost_membership_costs_the_tasks(state: MemberState, code: ErrorCode, kept: str) -> None:
    """ILLEGAL_GENERATION keeps the id, UNKNOWN_MEMBER_ID nothing; tasks are lost before the join is sent."""
    bench = Bench().to(MemberState.STABLE)
    if state is not MemberState.STABLE:
        bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    if state is MemberState.SYNCING:
        bench.answer(joined(4))
    bench.refuse(code)
    assert [type(effect) for effect in bench.effects] == [Lose, Send]
    assert bench.sent(JoinRequest).member_id == kept
    assert bench.identity == Identity(kept)


def test_an_unknown_member_asks_for_news_of_tasks_anew(bench: Bench) -> None:
    """The group may be another one that counts its revisions from the start."""
    bench.to(MemberState.STABLE)
    bench.answer(HeartbeatResponse(tasks_revision=7))
    bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.revisions_offered[-1] == 0


def test_a_membership_that_is_lost_again_and_again_backs_off(bench: Bench) -> None:
    """The first rejoin comes at once, the following ones later and later."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    delays = []
    for _ in range(3):
        bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        delays.append(bench.wanted(Wait).delay_s)
        bench.wait()
    assert delays == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize("state", [MemberState.JOINING, MemberState.SYNCING, MemberState.STABLE])
def test_a_fenced_member_stops_all_and_never_retries(state: MemberState) -> None:
    """FENCED_INSTANCE_ID ends the worker wherever it is met."""
    bench = Bench().to(state)
    bench.refuse(ErrorCode.FENCED_INSTANCE_ID)
    assert [type(effect) for effect in bench.effects] == [Lose, Quit]
    assert bench.wanted(Quit).reason is Reason.FENCED
    assert bench.state is MemberState.DOWN


@pytest.mark.parametrize("code", sorted(FATAL))
def test_a_join_refused_for_good_ends_the_worker(code: ErrorCode, bench: Bench) -> None:
    """The manager's words are what the user reads."""
    bench.to(MemberState.JOINING)
    bench.refuse(code)
    assert bench.wanted(Quit) == Quit(Reason.REFUSED, f"{code.name}: the test says {code.name}")


@pytest.mark.parametrize("code", TROUBLE)
@pytest.mark.parametrize("state", [MemberState.JOINING, MemberState.SYNCING, MemberState.STABLE])
def test_what_nobody_could_answer_is_asked_again(state: MemberState, code: ErrorCode) -> None:
    """The same request, after a back-off, id and generation kept, nothing lost."""
    bench = Bench().to(state)
    request, identity = bench.wanted(Send).request, bench.identity
    bench.refuse(code)
    assert bench.wanted(Wait).delay_s == pytest.approx(0.1)
    assert bench.state is (MemberState.PREPARING_JOIN if state is MemberState.JOINING else state)
    bench.wait()
    assert bench.wanted(Send).request == request
    assert bench.identity == identity
    assert bench.state is state


def test_the_back_off_doubles_to_a_second_and_starts_anew_after_success(bench: Bench) -> None:
    """100 ms, 200 ms, ... 1 s; an accepted heartbeat ends the series."""
    bench.to(MemberState.STABLE)
    delays = []
    for _ in range(6):
        bench.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        delays.append(bench.wanted(Wait).delay_s)
        bench.wait()
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    bench.now += 3
    bench.answer(HeartbeatResponse(tasks_revision=0))
    bench.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.wanted(Wait).delay_s == pytest.approx(0.1)


def test_an_unanswered_join_is_never_asked_again_without_its_id(bench: Bench) -> None:
    """A retry after a lost answer uses the same id, never none again."""
    bench.happen(Started())
    bench.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id=ME)
    bench.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.wait()
    assert bench.sent(JoinRequest).member_id == ME


def test_a_refused_assignment_is_corrected_once() -> None:
    """INVALID_ASSIGNMENT: the fall-back is synced; refused too, fresh facts are asked for."""
    bench = Bench().as_leader()
    bench.happen(Assigned(bench.wanted(Assign), assignments("t1", "t1")))
    bench.refuse(ErrorCode.INVALID_ASSIGNMENT)
    again = bench.wanted(Assign)
    assert again.faults == "the test says INVALID_ASSIGNMENT"
    bench.happen(Assigned(again, assignments("t1")))
    assert bench.sent(SyncRequest).assignments == assignments("t1")
    bench.refuse(ErrorCode.INVALID_ASSIGNMENT)
    bench.wait()
    assert bench.sent(JoinRequest).member_id == ME


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_FOUND])
def test_a_code_the_table_does_not_have_leads_back_to_the_start(code: ErrorCode, bench: Bench) -> None:
    """Any trouble leads to PreparingJoin, with a back-off."""
    bench.to(MemberState.STABLE)
    bench.refuse(code)
    assert bench.state is MemberState.PREPARING_JOIN
    bench.wait()
    assert bench.sent(JoinRequest).member_id == ME


def test_an_id_that_was_promised_but_not_given_is_asked_for_again(bench: Bench) -> None:
    """A broken MEMBER_ID_REQUIRED neither crashes nor spins."""
    bench.happen(Started())
    bench.refuse(ErrorCode.MEMBER_ID_REQUIRED)
    bench.wait()
    assert bench.sent(JoinRequest).member_id == ""


def test_an_answer_that_was_overtaken_is_ignored(bench: Bench) -> None:
    """The heartbeat that was given up for a rejoin may say what it likes."""
    bench.to(MemberState.STABLE)
    old = bench.wanted(Send)
    bench.happen(refused(ErrorCode.REBALANCE_IN_PROGRESS))
    assert bench.sent(JoinRequest).reason == "the group rebalances"
    for answer in (HeartbeatResponse(tasks_revision=9), failure(ErrorCode.UNKNOWN_MEMBER_ID)):
        assert bench.happen(Answered(old, answer)) == []
    assert bench.state is MemberState.JOINING
