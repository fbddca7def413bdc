"""One membership: what happened goes in, what to do comes out (protocol §7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from protocol.errands import NOTHING
from protocol.errors import Failure
from protocol.messages.base import NO_GENERATION
from protocol.messages.membership import (
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    OfferResponse,
    SyncResponse,
)
from worker.membership import requests
from worker.membership.asking_for_more import AskingForMore
from worker.membership.events import (
    Adopt,
    Answered,
    Assign,
    Assigned,
    Drain,
    Errand,
    Identity,
    LeaseExpired,
    Lose,
    Pending,
    Quit,
    Reason,
    Refresh,
    Refused,
    Revoke,
    Revoked,
    Send,
    Settled,
    Started,
    StopAsked,
    Wait,
    Waited,
)
from worker.membership.reactions import LOSSES, Reaction, RequestKind, reaction_to
from worker.membership.states import MemberState, States, Transition
from worker.waiting import MANAGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errands import Told
    from protocol.messages.membership import MemberAssignment, OfferRequest, Protocol, SyncRequest
    from worker.membership.events import Completion, Effect, Event
    from worker.membership.requests import Terms

BRISK_S = 0.1
"""The shortest time from one heartbeat to the next, unless the one before brought news."""
_ASKED_IN = {
    MemberState.JOINING: RequestKind.JOIN,
    MemberState.SYNCING: RequestKind.SYNC,
    MemberState.STABLE: RequestKind.HEARTBEAT,
}


class Membership:
    """The rules of one worker's membership in one group.

    At any time at most one pending effect is under way, and only its end is listened to: whatever belongs
    to an earlier request, generation or id is ignored.

    Args:
        terms: what the member tells at each join.
        offer: the assignors it can work with and its present metadata, read when it joins; given the last
            `tasks_revision` seen.
        chance: random numbers in [0, 1), for the jitter of the back-off.
    """

    def __init__(
        self, terms: Terms, offer: Callable[[int], tuple[Protocol, ...]], chance: Callable[[], float]
    ) -> None:
        self._terms = terms
        self._offer = offer
        self._chance = chance
        self._states = States()
        self._pending: Pending | None = None
        self._effects: list[Effect] = []
        self._now = 0.0
        self._sent_at = 0.0
        self._tries = 0
        self._joined: JoinResponse | None = None
        self._asked: OfferRequest | SyncRequest | None = None
        self._corrected = False
        self._more = AskingForMore(chance)
        self._revision = 0
        self._told = NOTHING
        self._why = "the worker starts"
        self._farewell = Quit(Reason.ASKED, "")
        self.identity = Identity()

    @property
    def state(self) -> MemberState:
        """Where the member stands."""
        return self._states.state

    def handle(self, event: Event, now: float) -> list[Effect]:
        """What to do, in this order, about `event` at the time `now` (seconds)."""
        self._now = now
        self._effects = []
        match event:
            case Answered() | Waited() | Assigned() | Revoked():
                if event.of is self._pending:
                    self._pending = None
                    self._go_on(event)
            case Started():
                self._states.take(Transition.START)
                self._prepare()
            case Refused():
                self._on_refused(event)
            case Settled():
                self._on_settled(event)
            case LeaseExpired():
                self._on_lease_expired()
            case StopAsked():
                self._on_stop(event)
        return self._effects

    def _go_on(self, event: Completion) -> None:
        match event:
            case Answered(answer=Failure() as failure):
                self._react(failure)
            case Answered(answer=JoinResponse() as joined):
                self._on_joined(joined)
            case Answered(answer=OfferResponse() as page):
                self._on_offered(page)
            case Answered(answer=SyncResponse() as synced):
                self._on_synced(synced)
            case Answered(answer=HeartbeatResponse() as beat):
                self._on_heartbeat(beat)
            case Answered(answer=LeaveResponse()):
                self._quit(self._farewell)
            case Assigned(assignments=assignments):
                self._send_sync(assignments)
            case Waited():
                self._on_waited()
            case Revoked(stopped=stopped):
                self._on_revoked(stopped=stopped)

    # The way in: PreparingJoin, Joining, Syncing, Stable.

    def _prepare(self, delay_s: float = 0.0) -> None:
        if delay_s:
            self._begin(Wait(delay_s))
        elif self._terms.eager:
            self._begin(Revoke())
        else:
            self._send_join()

    def _on_waited(self) -> None:
        if self.state is MemberState.PREPARING_JOIN:
            self._prepare()
        elif self.state is MemberState.SYNCING and self._asked is not None:
            self._begin(Send(self._asked))
        else:
            self._send_heartbeat()

    def _on_revoked(self, *, stopped: bool) -> None:
        if self.state is MemberState.LEAVING:
            self._leave(stopped=stopped)
        else:
            self._send_join()

    def _send_join(self) -> None:
        self._states.take(Transition.JOIN)
        self._corrected = False
        protocols = self._offer(self._revision)
        self._begin(Send(requests.join_request(self._terms, self.identity, protocols, self._why)))

    def _on_joined(self, joined: JoinResponse) -> None:
        self.identity = Identity(joined.member_id, joined.generation_id)
        self._joined = joined
        self._states.take(Transition.JOINED)
        if joined.leader_id == joined.member_id and not joined.skip_assignment:
            self._assign(joined)
        else:
            self._send_sync(())

    def _assign(self, joined: JoinResponse) -> None:
        """Once all is known that there is to place."""
        if joined.more is msgspec.UNSET:
            self._begin(Assign(joined))
        else:
            self._asked = requests.offer_request(self._terms, joined, joined.more)
            self._begin(Send(self._asked))

    def _on_offered(self, page: OfferResponse) -> None:
        if self._joined is None:
            raise AssertionError("tasks before any join")
        before = () if self._joined.tasks is msgspec.UNSET else self._joined.tasks
        self._joined = msgspec.structs.replace(self._joined, tasks=(*before, *page.tasks), more=page.more)
        self._assign(self._joined)

    def _send_sync(self, assignments: tuple[MemberAssignment, ...]) -> None:
        if self._joined is None:
            raise AssertionError("a sync before any join")
        self._asked = requests.sync_request(self._terms, self._joined, assignments)
        self._begin(Send(self._asked))

    def _on_synced(self, synced: SyncResponse) -> None:
        self._states.take(Transition.SYNCED)
        self._tries = 0
        given = requests.assignment_in(synced)
        tasks = frozenset(given.tasks)
        more_after_s = self._more.given(tasks, is_more_to_come=given.more is not msgspec.UNSET)
        self._effects.append(Adopt(self.identity, tasks, more_after_s))
        self._send_heartbeat()

    def _on_settled(self, settled: Settled) -> None:
        """Ask for the rest by joining again, unless another assignment has come (protocol §5, Pace)."""
        if self.state is MemberState.STABLE and settled.identity == self.identity:
            self._more.ask()
            self._rejoin("it has started what it was given, and takes more")

    def _send_heartbeat(self) -> None:
        self._sent_at = self._now
        self._begin(Send(requests.heartbeat_request(self._terms, self.identity, self._revision, self._told)))

    def _on_heartbeat(self, beat: HeartbeatResponse) -> None:
        self._tries = 0
        news = beat.tasks_revision != self._revision
        self._revision = beat.tasks_revision
        if news:
            self._effects.append(Refresh(beat.tasks_revision))
        self._take_errands(beat.told)
        pause_s = self._pause_s(news=news)
        if pause_s > 0:
            self._begin(Wait(pause_s))
        else:
            self._send_heartbeat()

    def _take_errands(self, told: Told) -> None:
        for kind, errand in told.changes(self._told):
            self._effects.append(Errand(self.identity, kind, errand))
        self._told = told

    def _pause_s(self, *, news: bool) -> float:
        """Held heartbeats follow one another at once; plain ones come three times a session."""
        if not self._terms.wait_ms:
            return self._terms.session_timeout_ms / 3000
        return 0.0 if news else self._sent_at + BRISK_S - self._now

    # Trouble: the table of protocol §7.

    def _react(self, failure: Failure) -> None:
        if self.state is MemberState.LEAVING:
            self._quit(self._farewell)
            return
        match reaction_to(failure.code, _ASKED_IN[self.state]):
            case Reaction.ADOPT_ID if member_id := str(failure.fields.get("member_id", "")):
                self.identity = Identity(member_id)
                self._rejoin(self._why)
            case Reaction.RETRY:
                self._retry()
            case Reaction.CORRECT if self._joined is not None and not self._corrected:
                self._corrected = True
                self._begin(Assign(self._joined, failure.message))
            case reaction:
                self._react_to_loss(reaction, failure)

    def _react_to_loss(self, reaction: Reaction, failure: Failure) -> None:
        """The reactions that are the same whichever request the failure answers."""
        match reaction:
            case Reaction.REJOIN:
                delay_s = self._next_delay_s() if self.state is MemberState.JOINING else 0.0
                self._rejoin("the group rebalances", delay_s)
            case Reaction.FORGET_GENERATION:
                self._forget(replace(self.identity, generation=NO_GENERATION), failure.code.name)
            case Reaction.FORGET_MEMBERSHIP:
                self._forget(Identity(), failure.code.name)
            case Reaction.YIELD:
                self._give_up(Reason.FENCED, failure)
            case Reaction.GIVE_UP:
                self._give_up(Reason.REFUSED, failure)
            case _:
                self._rejoin(f"trouble: {failure.code.name}", self._next_delay_s())

    def _retry(self) -> None:
        """The same request again, after a while; only a join goes through PreparingJoin for it."""
        delay_s = self._next_delay_s()
        if self.state is MemberState.JOINING:
            self._states.take(Transition.REJOIN)
        self._begin(Wait(delay_s))

    def _forget(self, identity: Identity, why: str) -> None:
        """Lose the tasks and join again: at once the first time, with a back-off when it goes on."""
        delay_s = self._next_delay_s() if self._tries else 0.0
        self._tries = max(self._tries, 1)
        self._lose(identity, why)
        self._rejoin(f"its membership was lost: {why}", delay_s)

    def _lose(self, identity: Identity, why: str) -> None:
        if not identity.member_id:
            self._revision = 0  # the group itself may be a new one
            self._take_errands(NOTHING)
        self.identity = identity
        self._effects.append(Lose(why))

    def _rejoin(self, why: str, delay_s: float = 0.0) -> None:
        self._why = why
        self._states.take(Transition.REJOIN)
        self._prepare(delay_s)

    def _next_delay_s(self) -> float:
        self._tries += 1
        return MANAGER.delay_s(self._tries - 1, self._chance())

    def _on_refused(self, refused: Refused) -> None:
        reaction = reaction_to(refused.failure.code, refused.asked)
        if refused.identity.member_id != self.identity.member_id or self._is_of_the_past(refused):
            return
        if self.state in {MemberState.DOWN, MemberState.LEAVING}:
            self._effects.append(Lose(refused.failure.code.name))
        elif reaction in LOSSES or self.state is MemberState.STABLE:
            self._react_to_loss(reaction, refused.failure)

    def _is_of_the_past(self, refused: Refused) -> bool:
        """Only a claim is bound to a generation; releases and reports are served in every one."""
        return refused.asked is RequestKind.CLAIM and refused.identity.generation != self.identity.generation

    def _on_lease_expired(self) -> None:
        """The manager may have given the tasks away: whoever is Stable without it has to join again."""
        why = "the manager has accepted nothing for too long: the lease has run out"
        if self.state is MemberState.STABLE:
            self._lose(replace(self.identity, generation=NO_GENERATION), why)
            self._rejoin(why, self._next_delay_s() if self._tries else 0.0)
        else:
            self._effects.append(Lose(why))

    # The way out.

    def _on_stop(self, stop: StopAsked) -> None:
        if self.state is MemberState.DOWN:
            self._quit(stop.farewell)
            return
        self._farewell = stop.farewell
        if self.state is not MemberState.LEAVING:
            self._states.take(Transition.LEAVE)
        if stop.in_order:
            self._begin(Drain())
        else:
            self._effects.append(Lose(stop.farewell.message))
            self._leave(stopped=False)

    def _leave(self, *, stopped: bool) -> None:
        """A static member only goes silent, so that it gets its tasks back when it returns (KIP-345)."""
        if self.identity.member_id and self._terms.instance_id is None:
            self._begin(Send(requests.leave_request(self.identity, self._farewell, stopped=stopped)))
        else:
            self._quit(self._farewell)

    def _give_up(self, reason: Reason, failure: Failure) -> None:
        self._effects.append(Lose(failure.code.name))
        self._quit(Quit(reason, f"{failure.code.name}: {failure.message}"))

    def _quit(self, farewell: Quit) -> None:
        self._pending = None
        self._states.take(Transition.END)
        self._effects.append(farewell)

    def _begin(self, effect: Send | Wait | Assign | Revoke | Drain) -> None:
        self._pending = effect
        self._effects.append(effect)
