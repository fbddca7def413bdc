"""A member at work: feeds events to its membership and carries the effects out."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from protocol.errors import ErrorCode, Failure
from protocol.messages.base import NO_GENERATION
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    OfferRequest,
    SyncRequest,
)
from telemetry.scope import know
from worker.membership.events import (
    Adopt,
    Answered,
    Assign,
    Assigned,
    Drain,
    Errand,
    Lose,
    Quit,
    Refresh,
    Revoke,
    Revoked,
    Send,
    Settled,
    Wait,
    Waited,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from protocol.errands import ErrandKind
    from protocol.messages.membership import (
        HeartbeatResponse,
        JoinResponse,
        LeaveResponse,
        MemberAssignment,
        OfferResponse,
        SyncResponse,
    )
    from worker.clock import Clock
    from worker.membership.events import Answer, Completion, Effect, Event, Identity, MembershipRequest
    from worker.membership.state_machine import Membership
    from worker.membership.states import MemberState

log = structlog.get_logger(__name__)


class CoordinatorClient(Protocol):
    """Whoever answers the requests of a membership; `worker.client.group_client.GroupClient` does."""

    async def join(self, request: JoinRequest) -> JoinResponse | Failure:
        """Enter or re-enter the group."""
        ...

    async def offer(self, request: OfferRequest) -> OfferResponse | Failure:
        """Hear of more tasks."""
        ...

    async def sync(self, request: SyncRequest) -> SyncResponse | Failure:
        """Hear the own assignment."""
        ...

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse | Failure:
        """Keep the session."""
        ...

    async def leave(self, request: LeaveRequest) -> LeaveResponse | Failure:
        """Go."""
        ...


class RebalanceListener(Protocol):
    """Whoever runs the tasks; `worker.tasks.runner.TaskRunner` does."""

    def adopt(self, identity: Identity, tasks: frozenset[str]) -> None:
        """A new assignment."""
        ...

    def refresh(self, tasks_revision: int) -> None:
        """Something about the tasks has changed up to this revision: definitions, targets, whose they are."""
        ...

    def lose(self, reason: str) -> None:
        """Every task is lost."""
        ...

    async def until_started(self) -> None:
        """Wait until every task of the assignment has been started, or was waited for long enough."""
        ...

    async def let_go(self, within_s: float, *, for_good: bool = False) -> bool:
        """Stop and release everything; `for_good` if the worker is about to end."""
        ...


class GroupLeader(Protocol):
    """Whoever decides who runs what; `worker.membership.leader.Leader` does."""

    async def assign(self, joined: JoinResponse, faults: str | None) -> tuple[MemberAssignment, ...]:
        """An assignment for every member; `faults` is what was wrong with the one before."""
        ...


class ErrandListener(Protocol):
    """Whoever does errands; `worker.errands.runner.ErrandRunner` does."""

    def take(self, identity: Identity, kind: ErrandKind, errand: str | None) -> None:
        """Of this kind do this one and no other, or none."""
        ...


class Member:
    """Runs one membership from its start to its `Quit`.

    Args:
        membership: the rules.
        coordinator: who answers its requests.
        tasks: who runs what it is assigned.
        leader: who assigns, when it leads.
        clock: the time of events, and the waits.
        spawn: runs a coroutine in the background; what it raises ends the worker.
        surrender: is called when the tasks are lost, before anything else is done about it.
        revoke_s: how long letting go before an eager join may take.
        drain_s: how long letting go before leaving may take.
        joined: is told the member id when the member is Stable for the first time.
        errands: does the errands that the member is given.
    """

    def __init__(
        self,
        membership: Membership,
        *,
        coordinator: CoordinatorClient,
        tasks: RebalanceListener,
        leader: GroupLeader,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
        surrender: Callable[[], None],
        revoke_s: float,
        drain_s: float,
        joined: Callable[[str], None],
        errands: ErrandListener | None = None,
    ) -> None:
        self._membership = membership
        self._coordinator = coordinator
        self._tasks = tasks
        self._leader = leader
        self._clock = clock
        self._spawn = spawn
        self._surrender = surrender
        self._revoke_s = revoke_s
        self._drain_s = drain_s
        self._joined = joined
        self._errands = errands
        self._events: deque[Event] = deque()
        self._is_handling = False
        self._under_way: asyncio.Task[Completion] | None = None
        self._has_joined = False
        self._is_put_off = False
        self.quit: asyncio.Future[Quit] = asyncio.get_running_loop().create_future()

    @property
    def state(self) -> MemberState:
        """Where the member stands."""
        return self._membership.state

    @property
    def member_id(self) -> str:
        """Under which name the group knows it."""
        return self._membership.identity.member_id

    @property
    def generation(self) -> int:
        """The generation it is a member of, -1 outside."""
        return self._membership.identity.generation

    def post(self, event: Event) -> None:
        """Take `event` in; from within the handling of another it waits for its turn."""
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events and not self.quit.done():
                self._handle(self._events.popleft())
        finally:
            self._is_handling = False

    def _handle(self, event: Event) -> None:
        before = self._membership.state
        effects = self._membership.handle(event, self._clock.now())
        self._tell_identity()
        self._tell(event, before)
        for effect in effects:
            self._carry_out(effect)

    def _tell_identity(self) -> None:
        """Every line of the log says from now on who the worker is."""
        identity = self._membership.identity
        know(
            member=identity.member_id or None,
            generation=None if identity.generation == NO_GENERATION else identity.generation,
        )

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send() | Wait() | Assign() | Revoke() | Drain():
                self._begin(effect)
            case Adopt(identity, tasks, more_after_s):
                self._tasks.adopt(identity, tasks)
                self._on_adopted(identity, tasks)
                if more_after_s is not None:
                    self._spawn(self._tell_when_settled(identity, more_after_s))
            case Refresh(tasks_revision):
                self._tasks.refresh(tasks_revision)
            case Errand(identity, kind, errand):
                if self._errands is not None:
                    self._errands.take(identity, kind, errand)
            case Lose(reason):
                self._surrender()
                self._tasks.lose(reason)
            case Quit():
                self._give_up_what_is_under_way()
                self.quit.set_result(effect)

    def _on_adopted(self, identity: Identity, tasks: frozenset[str]) -> None:
        log.info("assignment", member=identity.member_id, generation=identity.generation, tasks=len(tasks))
        if not self._has_joined:
            self._has_joined = True
            self._joined(identity.member_id)

    async def _tell_when_settled(self, identity: Identity, after_s: float) -> None:
        await asyncio.gather(self._tasks.until_started(), self._clock.sleep(after_s))
        self.post(Settled(identity))

    def _begin(self, effect: Send | Wait | Assign | Revoke | Drain) -> None:
        """One thing at a time: the one before is given up, and its end, should it come, is ignored."""
        self._give_up_what_is_under_way()
        self._under_way = self._spawn(self._carry_through(effect))
        self._under_way.add_done_callback(self._on_end)

    def _give_up_what_is_under_way(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
            self._under_way = None

    def _on_end(self, done: asyncio.Task[Completion]) -> None:
        if not done.cancelled() and done.exception() is None:
            self.post(done.result())

    async def _carry_through(self, effect: Send | Wait | Assign | Revoke | Drain) -> Completion:
        match effect:
            case Send(request):
                return Answered(effect, await self._ask(request))
            case Wait(delay_s):
                await self._clock.sleep(delay_s)
                return Waited(effect)
            case Assign(joined, faults):
                return Assigned(effect, await self._leader.assign(joined, faults))
            case Revoke():
                return Revoked(effect, stopped=await self._tasks.let_go(self._revoke_s))
            case Drain():
                return Revoked(effect, stopped=await self._tasks.let_go(self._drain_s, for_good=True))

    async def _ask(self, request: MembershipRequest) -> Answer:
        match request:
            case JoinRequest():
                return await self._coordinator.join(request)
            case OfferRequest():
                return await self._coordinator.offer(request)
            case SyncRequest():
                return await self._coordinator.sync(request)
            case HeartbeatRequest():
                return await self._coordinator.heartbeat(request)
            case LeaveRequest():
                return await self._coordinator.leave(request)

    def _tell(self, event: Event, before: MemberState) -> None:
        """What an event has come to; what passes by itself is for those who look closely."""
        after = self._membership.state
        member = self._membership.identity.member_id
        if isinstance(event, Answered):
            self._tell_refusal(event.answer, member)
        if after is not before:
            log.debug("member changed state", before=before.value, after=after.value, member=member)

    def _tell_refusal(self, answer: Answer, member: str) -> None:
        """Being put off passes, too, but somebody has to do something about it: that is told once."""
        code = answer.code if isinstance(answer, Failure) else ErrorCode.NONE
        was_put_off, self._is_put_off = self._is_put_off, code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if not isinstance(answer, Failure):
            return
        is_news = self._is_put_off and not was_put_off
        tell = log.warning if is_news or not code.retriable else log.debug
        cause = {"cause_id": cause_id} if (cause_id := answer.fields.get("cause_id")) else {}
        tell("request refused", code=code.name, why=answer.message, member=member, **cause)
