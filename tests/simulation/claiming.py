"""The claims of a worker of a history that are under way, and what may have been granted unheard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse
from worker.membership import events
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from tests.simulation.workers import SimWorker
    from worker.membership.events import Identity


WAIT_MS = 500
AGAIN_MS = 100


class Claims:
    """As `worker.tasks.exchange.claims` goes by them; `in_doubt` has the generation of each in doubt."""

    def __init__(self) -> None:
        self.in_doubt: dict[str, int] = {}
        self._under_way: dict[int, frozenset[str]] = {}
        self._begun = 0

    @property
    def tasks(self) -> frozenset[str]:
        """What may be granted any moment."""
        return frozenset[str]().union(*self._under_way.values())

    def begin(self, tasks: frozenset[str]) -> int:
        """One is sent; its number."""
        self._begun += 1
        self._under_way[self._begun] = tasks
        return self._begun

    def end(self, number: int) -> bool:
        """It is answered; whether anybody still waits for that."""
        return self._under_way.pop(number, None) is not None

    def abandon(self) -> None:
        """Nobody waits for answers any more, and nothing is in doubt."""
        self._under_way, self.in_doubt = {}, {}

    def doubt(self, tasks: AbstractSet[str], generation: int) -> None:
        """They may have been granted, and the answer was lost."""
        self.in_doubt |= dict.fromkeys(tasks, generation)

    def settle(self, tasks: AbstractSet[str], granted: Iterable[str], generation: int) -> None:
        """An answer of this generation tells of these tasks which of them are granted."""
        told = frozenset(granted)
        for task in tasks:
            if task in told or self.in_doubt.get(task, generation) < generation:
                self.in_doubt.pop(task, None)


class Claiming:
    """Of one worker: asks for what it is to have until it is answered, and asks after what it may have."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self.claims = Claims()

    def claim(self, tasks: frozenset[str]) -> None:
        """Ask for these tasks, and for those that may have been granted before without its hearing of it."""
        worker = self._worker
        tasks |= self.claims.in_doubt.keys() - worker.owned.keys() - worker.stuck.keys()
        if tasks:
            request = ClaimRequest(
                member_id=worker.identity.member_id,
                generation_id=worker.identity.generation,
                instance_id=worker.instance_id,
                tasks=tuple(sorted(tasks)),
                wait_ms=WAIT_MS,
            )
            number = self.claims.begin(tasks)
            worker.ask(request, partial(self._claimed, number, worker.identity, tasks, worker.world.now))

    def _claimed(self, claim: int, identity: Identity, tasks: frozenset[str], sent: int, answer: Any) -> None:
        worker = self._worker
        if not self.claims.end(claim):
            return
        if isinstance(answer, ClaimResponse):
            self._granted(identity, tasks, sent, answer)
            return
        if answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.claims.doubt(tasks, identity.generation)
        if identity != worker.identity:
            self._ask_after(tasks)
        elif answer.code in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}:
            worker.later(AGAIN_MS, lambda: self._claim_still(identity, tasks))
        else:
            worker.post(events.Refused(RequestKind.CLAIM, identity, answer))

    def _granted(self, identity: Identity, tasks: frozenset[str], sent: int, answer: ClaimResponse) -> None:
        worker = self._worker
        worker.accepted(sent)
        granted = (grant.task for grant in answer.granted)
        self.claims.settle(tasks, granted, identity.generation)
        worker.take_in(answer, sent)
        pending = frozenset(each.task for each in answer.pending) & worker.assigned
        if pending and identity == worker.identity:
            self.claim(pending)

    def _ask_after(self, tasks: frozenset[str]) -> None:
        """What an overtaken claim may have been granted is claimed once more, with all that is assigned."""
        if self.claims.in_doubt.keys() & tasks:
            self.claim(self._worker.assigned)

    def _claim_still(self, identity: Identity, tasks: frozenset[str]) -> None:
        if identity == self._worker.identity:
            self.claim(tasks & self._worker.assigned)
