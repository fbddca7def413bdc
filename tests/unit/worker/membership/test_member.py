from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from structlog.testing import capture_logs

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    MemberAssignment,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from telemetry.scope import add_scope, open_scope
from tests.fakes.clock import FakeClock
from tests.fakes.manager import ScriptedManager, failure
from tests.fakes.turns import settle, until
from worker.background import BackgroundTasks
from worker.membership.asking_for_more import MORE
from worker.membership.events import Identity, LeaseExpired, Quit, Reason, Refused, Started, StopAsked
from worker.membership.member import Member
from worker.membership.reactions import RequestKind
from worker.membership.requests import Terms
from worker.membership.state_machine import Membership
from worker.membership.states import MemberState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ME = "worker-1"
FAREWELL = Quit(Reason.ASKED, "stopped by the test")
TERMS = Terms(client_id="worker", session_timeout_ms=9000, rebalance_timeout_ms=60_000, wait_ms=3000)


class Tasks:
    """Writes down what it is told; letting go takes as long as the test wants."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.log: list[Any] = []

    def adopt(self, identity: Identity, tasks: frozenset[str]) -> None:
        self.log.append(("adopt", identity.generation, sorted(tasks)))

    def refresh(self, tasks_revision: int) -> None:
        self.log.append(("refresh", tasks_revision))

    def lose(self, reason: str) -> None:
        self.log.append(("lose", reason))
        if self._bench.on_lose is not None:
            self._bench.member.post(self._bench.on_lose)

    async def until_started(self) -> None:
        self.log.append("until started")
        await self._bench.started.wait()

    async def let_go(self, within_s: float, *, for_good: bool = False) -> bool:
        self.log.append(("let go for good" if for_good else "let go", within_s))
        await self._bench.clock.sleep(self._bench.letting_go_s)
        return self._bench.all_stopped


class Bench:
    """A member between a scripted manager and tasks that only write down what they are told."""

    def __init__(self, background: BackgroundTasks, terms: Terms = TERMS) -> None:
        self.clock = FakeClock()
        self.manager = ScriptedManager()
        self.letting_go_s = 0.0
        self.started = asyncio.Event()
        self.all_stopped = True
        self.on_lose: Any = None
        self.surrenders = 0
        self.joined: list[str] = []
        self.assigned: list[str | None] = []
        self.tasks = Tasks(self)
        self.member = Member(
            Membership(terms, lambda _: (Protocol("sticky", msgspec.Raw(b"{}")),), lambda: 0.5),
            coordinator=self.manager,
            tasks=self.tasks,
            leader=self,
            clock=self.clock,
            spawn=background.spawn,
            surrender=self._surrender,
            revoke_s=4,
            drain_s=35,
            joined=self.joined.append,
        )

    def _surrender(self) -> None:
        self.surrenders += 1
        self.tasks.log.append("surrender")

    async def assign(self, joined: JoinResponse, faults: str | None) -> tuple[MemberAssignment, ...]:
        """As a leader."""
        self.assigned.append(faults)
        return (MemberAssignment(joined.member_id, msgspec.Raw(b'{"tasks": ["t1"]}')),)

    def agree(self) -> None:
        """The manager lets a member in at once and holds its heartbeats."""
        self.manager.rule(JoinRequest, lambda request: joined(request) if request.member_id else ask_for_id())
        self.manager.rule(SyncRequest, lambda _: synced("t1"))
        self.manager.rule(LeaveRequest, lambda _: LeaveResponse(members=()))

    async def stable(self) -> None:
        """Come in."""
        self.agree()
        self.member.post(Started())
        await until(lambda: self.member.state is MemberState.STABLE)
        self.tasks.log.clear()


def ask_for_id() -> Failure:
    return failure(ErrorCode.MEMBER_ID_REQUIRED, member_id=ME)


def joined(request: JoinRequest, generation: int = 1) -> JoinResponse:
    return JoinResponse(
        generation_id=generation,
        protocol_type="sparkherd",
        protocol_name="sticky",
        leader_id=request.member_id,
        member_id=request.member_id,
    )


def synced(*tasks: str) -> SyncResponse:
    assignment = msgspec.Raw(msgspec.json.encode({"tasks": tasks}))
    return SyncResponse(protocol_type="sparkherd", protocol_name="sticky", assignment=assignment)


@pytest.fixture
async def background() -> AsyncIterator[BackgroundTasks]:
    """Whoever works in the background."""
    async with BackgroundTasks() as background:
        yield background


@pytest.fixture
async def bench(background: BackgroundTasks) -> Bench:
    """A member that has not started."""
    return Bench(background)


async def test_a_member_that_is_to_have_more_joins_again_when_its_tasks_are_started(bench: Bench) -> None:
    """Not before, nor at once; and once, for the next assignment has nothing to follow."""
    more = msgspec.Raw(b'{"tasks": ["t1"], "more": 1}')
    bench.agree()
    bench.manager.rule(
        SyncRequest,
        lambda _: SyncResponse(protocol_type="sparkherd", protocol_name="sticky", assignment=more),
    )
    bench.member.post(Started())
    await until(lambda: "until started" in bench.tasks.log)
    joins = len(bench.manager.asked(JoinRequest))
    bench.manager.rule(SyncRequest, lambda _: synced("t1", "t2"))
    await bench.clock.advance(MORE.first_s / 2)
    bench.started.set()
    await settle()
    assert len(bench.manager.asked(JoinRequest)) == joins
    await bench.clock.advance(MORE.first_s / 2)
    await until(lambda: ("adopt", 1, ["t1", "t2"]) in bench.tasks.log)
    await settle()
    assert len(bench.manager.asked(JoinRequest)) == joins + 1


async def test_a_member_comes_in_leads_and_tells_its_id_once(bench: Bench) -> None:
    """From Down to Stable without any time passing; the line for whoever started it comes once."""
    bench.agree()
    bench.member.post(Started())
    await until(lambda: bench.member.state is MemberState.STABLE)
    assert bench.tasks.log == [("adopt", 1, ["t1"])]
    assert bench.assigned == [None]
    assert bench.manager.asked(SyncRequest)[0].assignments[0].member_id == ME
    (await bench.manager.next(HeartbeatRequest)).answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    await until(lambda: len(bench.tasks.log) == 2)
    assert bench.joined == [ME]


async def test_every_line_says_who_the_member_is_from_then_on(bench: Bench) -> None:
    """Its id and generation; none of an earlier one once they are lost."""
    open_scope(group="g")
    await bench.stable()
    assert add_scope(None, "", {"event": "x"}) == {
        "group": "g",
        "member": ME,
        "generation": 1,
        "event": "x",
    }
    bench.manager.no_rule(JoinRequest)
    bench.member.post(LeaseExpired())
    assert "generation" not in add_scope(None, "", {})


async def test_exactly_one_request_is_under_way(bench: Bench) -> None:
    """A rejoin gives the held heartbeat up before its join goes out."""
    await bench.stable()
    beat = await bench.manager.next(HeartbeatRequest)
    bench.manager.no_rule(JoinRequest)
    bench.member.post(Refused(RequestKind.CLAIM, Identity(ME, 1), failure(ErrorCode.REBALANCE_IN_PROGRESS)))
    await bench.manager.next(JoinRequest)
    assert beat.is_given_up


async def test_a_rebalance_is_joined_without_delay(bench: Bench) -> None:
    """Heartbeat, join, assign, sync, adopt: no time passes in between."""
    await bench.stable()
    before = bench.clock.now()
    (await bench.manager.next(HeartbeatRequest)).answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    await until(lambda: bench.tasks.log == [("adopt", 1, ["t1"])])
    assert bench.clock.now() == before


async def test_a_manager_that_is_away_is_asked_until_it_is_back(bench: Bench) -> None:
    """A member in Stable stays there, and nothing is lost."""
    await bench.stable()
    beat = await bench.manager.next(HeartbeatRequest)
    bench.manager.rule(HeartbeatRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    beat.answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.clock.advance(5)
    assert bench.member.state is MemberState.STABLE
    bench.manager.rule(HeartbeatRequest, lambda _: None)
    await bench.clock.advance(1.1)
    (await bench.manager.next(HeartbeatRequest)).answer(HeartbeatResponse(tasks_revision=3))
    await until(lambda: bench.tasks.log == [("refresh", 3)])


async def test_losing_the_tasks_gives_the_lease_up_first(bench: Bench) -> None:
    """Batches are refused from this moment on, before any query is told to stop."""
    await bench.stable()
    (await bench.manager.next(HeartbeatRequest)).answer(failure(ErrorCode.ILLEGAL_GENERATION))
    await until(lambda: len(bench.tasks.log) == 3)
    assert bench.tasks.log == ["surrender", ("lose", "ILLEGAL_GENERATION"), ("adopt", 1, ["t1"])]


async def test_events_met_while_another_is_handled_wait_for_their_turn(bench: Bench) -> None:
    """The rules are never entered twice at once."""
    await bench.stable()
    bench.on_lose = StopAsked(FAREWELL)
    bench.member.post(LeaseExpired())
    await until(bench.member.quit.done)
    assert [entry for entry in bench.tasks.log if entry != "surrender"][1:] == [("let go for good", 35)]


async def test_a_member_lets_go_then_leaves_then_quits(bench: Bench) -> None:
    """In this order, however long the first takes."""
    bench.letting_go_s = 20
    await bench.stable()
    bench.member.post(StopAsked(FAREWELL))
    await bench.clock.advance(19)
    assert bench.manager.asked(LeaveRequest) == []
    await bench.clock.advance(1)
    await until(bench.member.quit.done)
    assert bench.member.quit.result() == FAREWELL
    assert len(bench.manager.asked(LeaveRequest)) == 1


async def test_a_member_leaves_with_the_word_of_its_tasks(bench: Bench) -> None:
    """Whether everything has stopped is for them to say."""
    bench.all_stopped = False
    await bench.stable()
    bench.member.post(StopAsked(FAREWELL))
    await until(bench.member.quit.done)
    assert [leaver.stopped for leaver in bench.manager.asked(LeaveRequest)[0].members] == [False]


async def test_an_eager_member_lets_go_before_it_joins(background: BackgroundTasks) -> None:
    """Within its own time limit."""
    bench = Bench(background, Terms("worker", 9000, 60_000, 3000, eager=True))
    bench.letting_go_s = 2
    bench.member.post(Started())
    await settle()
    assert bench.tasks.log == [("let go", 4)]
    assert bench.manager.asked(JoinRequest) == []
    await bench.clock.advance(2)
    await bench.manager.next(JoinRequest)


async def test_a_fenced_member_quits_and_asks_nothing_more(bench: Bench) -> None:
    """Whatever happens afterwards means nothing."""
    await bench.stable()
    (await bench.manager.next(HeartbeatRequest)).answer(failure(ErrorCode.FENCED_INSTANCE_ID))
    await until(bench.member.quit.done)
    asked = len(bench.manager.requests)
    bench.member.post(LeaseExpired())
    bench.member.post(StopAsked(FAREWELL))
    await bench.clock.advance(60)
    assert bench.member.quit.result().reason is Reason.FENCED
    assert len(bench.manager.requests) == asked


async def test_a_refused_assignment_is_corrected_by_the_leader(bench: Bench) -> None:
    """The manager's words reach whoever assigns."""
    bench.agree()
    refusals = iter([failure(ErrorCode.INVALID_ASSIGNMENT), synced("t1")])
    bench.manager.rule(SyncRequest, lambda _: next(refusals))
    bench.member.post(Started())
    await until(lambda: bench.member.state is MemberState.STABLE)
    assert bench.assigned == [None, "the test says INVALID_ASSIGNMENT"]


async def test_a_member_that_is_put_off_says_so_once(bench: Bench) -> None:
    """In its log, with the manager's words; and again when it has been served meanwhile."""
    bench.agree()
    throttled = failure(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    bench.manager.rule(JoinRequest, lambda _: throttled)
    with capture_logs() as logs:
        bench.member.post(Started())
        await bench.clock.advance(5)
        bench.agree()
        await bench.clock.advance(2)
        (await bench.manager.next(HeartbeatRequest)).answer(throttled)
        await bench.clock.advance(1)
    told = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["event"], line["code"]) for line in told] == [
        ("request refused", "THROTTLING_QUOTA_EXCEEDED")
    ] * 2
    assert told[0]["why"] == "the test says THROTTLING_QUOTA_EXCEEDED"
    assert bench.member.state is MemberState.STABLE


async def test_a_member_whose_id_was_forgotten_says_so(bench: Bench) -> None:
    """It asks for another one, and joins with that."""
    bench.agree()
    forgotten = iter([failure(ErrorCode.UNKNOWN_MEMBER_ID)])
    bench.manager.rule(
        JoinRequest,
        lambda request: next(forgotten, joined(request)) if request.member_id else ask_for_id(),
    )
    with capture_logs() as logs:
        bench.member.post(Started())
        await until(lambda: bench.member.state is MemberState.STABLE)
    assert [line["code"] for line in logs if line["log_level"] == "warning"] == ["UNKNOWN_MEMBER_ID"]
