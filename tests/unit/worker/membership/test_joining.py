from __future__ import annotations

import msgspec
import pytest

from protocol.errors import ErrorCode
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    OfferRequest,
    OfferResponse,
    SyncRequest,
    SyncResponse,
)
from protocol.messages.tasks import OfferedTask
from tests.unit.worker.membership.bench import ME, Bench, assignments, joined, synced
from worker.membership.asking_for_more import MORE
from worker.membership.events import (
    Adopt,
    Assign,
    Assigned,
    Identity,
    Refresh,
    Revoke,
    Revoked,
    Send,
    Settled,
    Started,
    Wait,
)
from worker.membership.requests import Terms
from worker.membership.state_machine import BRISK_S
from worker.membership.states import MemberState


def test_a_dynamic_member_comes_in_with_the_id_it_was_handed(bench: Bench) -> None:
    """Join with no id, join with the handed-out one, sync, heartbeats: Down to Stable."""
    bench.happen(Started())
    assert bench.sent(JoinRequest).member_id == ""
    bench.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id=ME)
    assert bench.sent(JoinRequest).member_id == ME
    bench.answer(joined())
    assert bench.sent(SyncRequest).assignments == ()
    bench.answer(synced("t1"))
    assert bench.wanted(Adopt) == Adopt(Identity(ME, 3), frozenset({"t1"}))
    assert bench.sent(HeartbeatRequest).generation_id == 3
    assert bench.state is MemberState.STABLE


def test_the_join_says_what_the_terms_are(bench: Bench) -> None:
    """Time-outs, ids and the assignors in order are what the worker was told."""
    bench.happen(Started())
    request = bench.sent(JoinRequest)
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (9000, 60_000)
    assert (request.client_id, request.instance_id, request.protocol_type) == ("worker", None, "sparkherd")
    assert [protocol.name for protocol in request.protocols] == ["sticky"]


def test_tasks_are_adopted_before_the_first_heartbeat_is_sent(bench: Bench) -> None:
    """Claims go out first: nothing on the way from sync to claim waits for anything."""
    bench.to(MemberState.STABLE)
    assert [type(effect) for effect in bench.effects] == [Adopt, Send]


def test_the_leader_assigns_before_it_syncs() -> None:
    """The leader's sync carries the list, and is sent when the list is there."""
    bench = Bench().as_leader()
    bench.happen(Assigned(bench.wanted(Assign), assignments("t1")))
    assert bench.sent(SyncRequest).assignments == assignments("t1")


def pages(bench: Bench) -> Bench:
    """A leader that has been told of one of three tasks."""
    bench.happen(Started())
    bench.answer(msgspec.structs.replace(joined(leader=ME), tasks=(offered("t1"),), more="t1"))
    return bench


def to_place(bench: Bench) -> list[str]:
    """What the leader is to assign."""
    tasks = bench.wanted(Assign).joined.tasks
    assert tasks is not msgspec.UNSET
    return [each.task for each in tasks]


def offered(name: str) -> OfferedTask:
    """A task to be placed."""
    return OfferedTask(name, 1.0, None, {}, None)


def test_a_leader_assigns_once_it_has_been_told_of_all_tasks(bench: Bench) -> None:
    """It asks for one page after the other, and assigns what all of them had."""
    pages(bench)
    request = bench.sent(OfferRequest)
    assert (request.member_id, request.generation_id, request.after) == (ME, 3, "t1")
    bench.answer(OfferResponse(tasks=(offered("t2"),), more="t2"))
    assert bench.sent(OfferRequest).after == "t2"
    bench.answer(OfferResponse(tasks=(offered("t3"),)))
    assert to_place(bench) == ["t1", "t2", "t3"]


def test_a_page_that_does_not_come_is_asked_for_again(bench: Bench) -> None:
    """And nothing of an earlier generation in its place."""
    bench.to(MemberState.STABLE)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(msgspec.structs.replace(joined(4, leader=ME), tasks=(offered("t1"),), more="t1"))
    bench.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.wait()
    assert (bench.sent(OfferRequest).generation_id, bench.sent(OfferRequest).after) == (4, "t1")


def test_a_rebalance_between_two_pages_has_the_leader_join_again(bench: Bench) -> None:
    """What it was told of so far is told anew."""
    pages(bench)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.sent(JoinRequest).member_id == ME
    bench.answer(msgspec.structs.replace(joined(4, leader=ME), tasks=(offered("t2"),)))
    assert to_place(bench) == ["t2"]


def test_a_leader_that_replaced_itself_syncs_without_a_list(bench: Bench) -> None:
    """`skip_assignment` says that the stored assignment stands."""
    bench.happen(Started())
    bench.answer(joined(leader=ME, skip=True))
    assert bench.sent(SyncRequest).assignments == ()


@pytest.mark.parametrize("body", [b"null", b'"nonsense"', b'{"tasks": [3]}'])
def test_an_assignment_of_another_form_is_none(bench: Bench, body: bytes) -> None:
    """Whatever a foreign leader wrote, the member is assigned nothing and lives on."""
    bench.to(MemberState.SYNCING)
    bench.answer(SyncResponse(protocol_type=None, protocol_name=None, assignment=msgspec.Raw(body)))
    assert bench.wanted(Adopt).tasks == frozenset()


def with_more(bench: Bench) -> Adopt:
    """It is given a task, and told that two others are to follow."""
    bench.to(MemberState.SYNCING)
    return given_with_more(bench)


def given_with_more(bench: Bench) -> Adopt:
    assignment = msgspec.Raw(b'{"tasks": ["t1"], "more": 2}')
    bench.answer(SyncResponse(protocol_type="sparkherd", protocol_name="sticky", assignment=assignment))
    return bench.wanted(Adopt)


def test_who_has_started_what_it_was_given_joins_again_for_more(bench: Bench) -> None:
    """With a reason that people read."""
    adopted = with_more(bench)
    assert adopted == Adopt(bench.identity, frozenset({"t1"}), MORE.first_s)
    bench.happen(Settled(adopted.identity))
    assert bench.sent(JoinRequest).reason == "it has started what it was given, and takes more"


def test_who_is_promised_more_and_given_none_asks_less_and_less_often(bench: Bench) -> None:
    """Each time has the whole group rebalance; others that do, and an assignment like any, are no matter."""
    adopted = with_more(bench)
    pauses = []
    for _ in range(3):
        bench.happen(Settled(adopted.identity))
        bench.answer(joined(4))
        adopted = given_with_more(bench)
        pauses.append(adopted.more_after_s)
    assert pauses == [2 * MORE.first_s, 4 * MORE.first_s, 8 * MORE.first_s]
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(joined(5))
    assert given_with_more(bench).more_after_s == pauses[-1]


def test_who_has_another_assignment_by_now_asks_for_nothing(bench: Bench) -> None:
    """It was told of more in that one, if there is any."""
    adopted = with_more(bench)
    assert bench.happen(Settled(Identity(ME, adopted.identity.generation - 1))) == []


def test_who_joins_already_asks_for_nothing(bench: Bench) -> None:
    """The assignment that this leads to has the rest, or says that there is one."""
    adopted = with_more(bench)
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.state is MemberState.JOINING
    assert bench.happen(Settled(adopted.identity)) == []


def test_an_eager_member_lets_go_of_everything_before_it_joins() -> None:
    """Only when all is stopped and released does its join go out."""
    bench = Bench(Terms("worker", 9000, 60_000, 3000, eager=True))
    bench.happen(Started())
    assert not bench.wants(Send)
    bench.happen(Revoked(bench.wanted(Revoke)))
    assert bench.sent(JoinRequest)


def test_held_heartbeats_follow_one_another_at_once(bench: Bench) -> None:
    """The next one goes out as soon as the one before was held and answered."""
    bench.to(MemberState.STABLE)
    bench.now += 3
    bench.answer(HeartbeatResponse(tasks_revision=0))
    assert bench.sent(HeartbeatRequest).wait_ms == 3000


def test_heartbeats_that_are_not_held_do_not_run_hot(bench: Bench) -> None:
    """A manager that answers at once with no news is not asked again at once."""
    bench.to(MemberState.STABLE)
    bench.answer(HeartbeatResponse(tasks_revision=0))
    assert bench.wanted(Wait).delay_s == pytest.approx(BRISK_S)
    bench.wait()
    assert bench.sent(HeartbeatRequest)


def test_without_holding_three_heartbeats_fit_into_a_session() -> None:
    """`wait_ms` 0 falls back to Kafka's way."""
    bench = Bench(Terms("worker", 9000, 60_000, 0)).to(MemberState.STABLE)
    bench.answer(HeartbeatResponse(tasks_revision=0))
    assert bench.wanted(Wait).delay_s == pytest.approx(3)


def test_a_new_revision_is_acted_on_and_told_in_the_next_heartbeat(bench: Bench) -> None:
    """News of tasks reach whoever runs them once, at once."""
    bench.to(MemberState.STABLE)
    bench.answer(HeartbeatResponse(tasks_revision=7))
    assert bench.wanted(Refresh) == Refresh(7)
    assert bench.sent(HeartbeatRequest).tasks_revision == 7
    bench.answer(HeartbeatResponse(tasks_revision=7))
    assert not bench.wants(Refresh)


def test_the_revision_is_told_when_joining_again(bench: Bench) -> None:
    """The metadata of a rejoin carry the last revision seen."""
    bench.to(MemberState.STABLE)
    bench.answer(HeartbeatResponse(tasks_revision=7))
    bench.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.revisions_offered == [0, 7]
