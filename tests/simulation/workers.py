"""The members' half: the real membership rules around a keeper that is only its bookkeeping."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from assignors.base import Member, Task
from assignors.sticky import StickyAssignor
from protocol.errors import ErrorCode, Failure
from protocol.messages.base import decode_opaque, encode_opaque
from protocol.messages.membership import MemberAssignment, Protocol
from protocol.messages.ownership import ClaimRequest, ClaimResponse, ReleaseRequest
from worker.membership.core import Membership
from worker.membership.effects import (
    Adopt,
    Assign,
    Drain,
    Identity,
    Lose,
    Quit,
    Reason,
    Refresh,
    Revoke,
    Send,
    Wait,
)
from worker.membership.events import (
    Answered,
    Assigned,
    LeaseExpired,
    Refused,
    Revoked,
    Started,
    StopAsked,
    Waited,
)
from worker.membership.reactions import Asked
from worker.membership.requests import Terms

if TYPE_CHECKING:
    from protocol.messages.membership import JoinResponse
    from tests.simulation.network import Network
    from tests.simulation.world import World

SESSION_MS = 2000
REBALANCE_MS = 3000


class SimWorker:
    """A worker; `owned` is what it would be running, each task under its token."""

    def __init__(
        self, world: World, network: Network, name: str, instance_id: str | None = None, wait_ms: int = 600
    ) -> None:
        self.world = world
        self.network = network
        self.owned: dict[str, int] = {}
        self.assigned: frozenset[str] = frozenset()
        self.claiming: frozenset[str] = frozenset()
        self.identity = Identity()
        self.is_alive = True
        self.heard_at = world.now
        self.membership = Membership(
            Terms(name, SESSION_MS, REBALANCE_MS, wait_ms, instance_id), self._offer, world.chance.random
        )
        self.post(Started())
        self._watch_lease()

    def post(self, event: Any) -> None:
        """Something happened to it."""
        if not self.is_alive:
            return
        for effect in self.membership.handle(event, self.world.now / 1000):
            self._carry_out(effect)

    def kill(self) -> None:
        """It is gone between two instructions."""
        self.is_alive = False

    def stop(self) -> None:
        """It is asked to leave in order."""
        self.post(StopAsked(Quit(Reason.ASKED, "bye")))

    def _offer(self, revision: int) -> tuple[Protocol, ...]:
        return (Protocol("sticky", encode_opaque({"owned": dict(self.owned), "tasks_revision": revision})),)

    def _carry_out(self, effect: Any) -> None:
        match effect:
            case Send(request):
                sent = self.world.now
                self.network.ask(request, lambda answer: self._answered(effect, answer, sent))
            case Wait(delay_s):
                self.world.after(int(delay_s * 1000) + 1, lambda: self.post(Waited(effect)))
            case Assign(joined):
                self.world.after(self.world.some(0, 5), lambda: self.post(Assigned(effect, _assign(joined))))
            case Adopt(identity, tasks):
                self.identity, self.assigned = identity, tasks
                self._let_go(frozenset(self.owned) - tasks)
                self._claim(tasks)
            case Refresh():
                self._claim(self.assigned)
            case Revoke() | Drain():
                self._let_go(frozenset(self.owned))
                self.world.after(50, lambda: self.post(Revoked(effect)))
            case Lose():
                self.owned, self.assigned = {}, frozenset()
            case Quit():
                self.is_alive = False

    def _answered(self, effect: Send, answer: Any, sent: int) -> None:
        if not isinstance(answer, Failure) or answer.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.heard_at = max(self.heard_at, sent)
        self.post(Answered(effect, answer))

    def _watch_lease(self) -> None:
        """No accepted request for a session timeout, counted from when it was sent: all is lost."""
        if not self.is_alive:
            return
        if self.world.now - self.heard_at > SESSION_MS and self.owned:
            self.post(LeaseExpired())
        self.world.after(100, self._watch_lease)

    # a keeper's bookkeeping

    def _claim(self, tasks: frozenset[str]) -> None:
        if not tasks or not self.is_alive:
            return
        request = ClaimRequest(
            member_id=self.identity.member_id,
            generation_id=self.identity.generation,
            tasks=tuple(sorted(tasks)),
            wait_ms=500,
        )
        self.network.ask(request, partial(self._claimed, self.identity, tasks))

    def _claimed(self, identity: Identity, tasks: frozenset[str], answer: Any) -> None:
        if not self.is_alive or identity != self.identity:
            return
        if isinstance(answer, ClaimResponse):
            for grant in answer.granted:
                if grant.task in self.assigned:
                    self.owned[grant.task] = grant.token
            self._claim(frozenset(p.task for p in answer.pending) & self.assigned)
        elif answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.world.after(100, lambda: self._claim_still(identity, tasks))
        else:
            self.post(Refused(Asked.CLAIM, identity, answer))

    def _claim_still(self, identity: Identity, tasks: frozenset[str]) -> None:
        if identity == self.identity:
            self._claim(tasks & self.assigned)

    def _let_go(self, tasks: frozenset[str]) -> None:
        released = {task: self.owned.pop(task) for task in sorted(tasks)}
        if released:
            self.world.after(self.world.some(0, 100), lambda: self._release(self.identity, released))

    def _release(self, identity: Identity, tasks: dict[str, int]) -> None:
        if not self.is_alive or identity.member_id != self.identity.member_id:
            return
        request = ReleaseRequest(member_id=identity.member_id, tasks=tasks)
        self.network.ask(request, lambda answer: self._released(identity, tasks, answer))

    def _released(self, identity: Identity, tasks: dict[str, int], answer: Any) -> None:
        if isinstance(answer, Failure):
            if answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self.world.after(100, lambda: self._release(identity, tasks))
            else:
                self.post(Refused(Asked.RELEASE, identity, answer))


def _assign(joined: JoinResponse) -> tuple[MemberAssignment, ...]:
    metadata = {m.member_id: decode_opaque(m.metadata) for m in joined.members}
    current = {member: sorted(told["owned"]) for member, told in metadata.items()}
    members = [
        Member(m.member_id, m.instance_id, 1.0, {}, frozenset(current[m.member_id])) for m in joined.members
    ]
    tasks = [Task(t.task, t.weight, t.worker, t.labels, t.load) for t in joined.tasks or ()]
    given = StickyAssignor().assign(members, tasks, current)
    return tuple(MemberAssignment(m, encode_opaque({"tasks": given.get(m, [])})) for m in metadata)
