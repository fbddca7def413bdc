from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages.membership import (
    JoinRequest,
)
from tests.unit.worker.membership.bench import LOSSES, ME, Bench, refused
from worker.membership.events import (
    Identity,
    LeaseExpired,
    Lose,
    Quit,
    Reason,
    Refused,
    Send,
    Wait,
)
from worker.membership.reactions import RequestKind
from worker.membership.states import MemberState


def test_a_claim_told_of_a_rebalance_rejoins(bench: Bench) -> None:
    """The heartbeat would say the same a moment later."""
    bench.to(MemberState.STABLE)
    bench.happen(refused(ErrorCode.REBALANCE_IN_PROGRESS))
    assert bench.sent(JoinRequest).member_id == ME
    assert not bench.wants(Lose)


@pytest.mark.parametrize("asked", [RequestKind.CLAIM, RequestKind.RELEASE, RequestKind.REPORT])
@pytest.mark.parametrize(("code", "kept"), LOSSES.items())
def test_the_membership_may_be_lost_by_any_request(asked: RequestKind, code: ErrorCode, kept: str) -> None:
    """A report that meets UNKNOWN_MEMBER_ID counts as much as a heartbeat."""
    bench = Bench().to(MemberState.STABLE)
    bench.happen(refused(code, asked))
    assert bench.wants(Lose)
    assert bench.sent(JoinRequest).member_id == kept


@pytest.mark.parametrize("asked", [RequestKind.CLAIM, RequestKind.RELEASE, RequestKind.REPORT])
def test_any_request_may_find_the_member_fenced(asked: RequestKind) -> None:
    """Another process carries the instance id."""
    bench = Bench().to(MemberState.STABLE)
    bench.happen(refused(ErrorCode.FENCED_INSTANCE_ID, asked))
    assert bench.wanted(Quit).reason is Reason.FENCED


@pytest.mark.parametrize(
    "late",
    [
        refused(ErrorCode.UNKNOWN_MEMBER_ID, member="worker-0"),
        refused(ErrorCode.ILLEGAL_GENERATION, generation=2),
        refused(ErrorCode.REBALANCE_IN_PROGRESS, generation=2),
        refused(ErrorCode.UNKNOWN_MEMBER_ID, RequestKind.REPORT, member="worker-0"),
    ],
)
def test_trouble_of_an_earlier_generation_or_id_is_ignored(late: Refused, bench: Bench) -> None:
    """What the member was told as somebody else is no news."""
    bench.to(MemberState.STABLE)
    assert bench.happen(late) == []


def test_a_release_is_bound_to_no_generation(bench: Bench) -> None:
    """Releases and reports are served in every state, so their refusals count in every generation."""
    bench.to(MemberState.STABLE)
    bench.happen(refused(ErrorCode.UNKNOWN_MEMBER_ID, RequestKind.RELEASE, generation=2))
    assert bench.wants(Lose)


@pytest.mark.parametrize("code", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_claim_s_trouble_means_nothing_while_already_joining(code: ErrorCode, bench: Bench) -> None:
    """The parked join keeps its place."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.happen(refused(code)) == []


def test_a_stable_member_without_lease_loses_its_tasks_and_joins_anew(bench: Bench) -> None:
    """The id may still be good; the generation is not trusted any more."""
    bench.to(MemberState.STABLE)
    bench.happen(LeaseExpired())
    assert [type(effect) for effect in bench.effects] == [Lose, Send]
    assert bench.sent(JoinRequest).member_id == ME
    assert bench.identity == Identity(ME)


def test_a_lease_that_ends_amid_trouble_does_not_hurry_the_retries(bench: Bench) -> None:
    """The back-off goes on where it was."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.happen(LeaseExpired())
    assert bench.wants(Lose)
    assert bench.wanted(Wait).delay_s == pytest.approx(0.2)


@pytest.mark.parametrize("state", [MemberState.PREPARING_JOIN, MemberState.JOINING, MemberState.SYNCING])
def test_a_lease_that_ends_on_the_way_in_costs_the_tasks_and_nothing_else(state: MemberState) -> None:
    """A parked join keeps its place: giving it up would only make the others wait."""
    bench = Bench().to(state)
    assert [type(effect) for effect in bench.happen(LeaseExpired())] == [Lose]
    assert bench.state is state
