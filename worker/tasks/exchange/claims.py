"""Claiming what is assigned: one batch at once, then what is pending until it is granted (protocol §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ClaimRequest
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Coroutine, Iterable

    from protocol.messages.ownership import ClaimResponse
    from worker.membership.events import Identity
    from worker.tasks.exchange.manager_link import ManagerLink

BRISK_S = 0.1
"""An answer that comes sooner and grants nothing was not held: asking at once again would ask without end."""


class Claims:
    """At most one claim of a worker counts: a newer one takes the place of the one before.

    The manager answers each of them (protocol §4, Parked requests); what an overtaken claim was granted is
    taken in all the same, because its tokens are the worker's. What may have been granted in an answer that
    was lost is in doubt, and claimed with the rest until the manager has said what became of it: whoever owns
    a task without knowing it would never release it.

    Args:
        link: to the manager.
        wait_ms: how long a claim of which nothing can be granted may wait.
        prepare: how many tasks can be made ready while they are pending. If there are any, the first answer
            is not waited for: it tells which tasks these are.
        revision: the latest `tasks_revision` the worker knows.
        taken: is given each answer, and when the request for it was sent.
        doubted: is called when a claim that was overtaken has left something in doubt.
        spawn: runs a coroutine in the background.
    """

    def __init__(
        self,
        link: ManagerLink,
        *,
        wait_ms: int,
        prepare: Callable[[], int],
        revision: Callable[[], int],
        taken: Callable[[ClaimResponse, float], None],
        doubted: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._link = link
        self._wait_ms = wait_ms
        self._prepare = prepare
        self._revision = revision
        self._taken = taken
        self._doubted = doubted
        self._is_stopped = False
        self._spawn = spawn
        self._latest = object()
        self._told: int | None = None
        self._running: dict[object, asyncio.Task[None]] = {}
        self._unheard: dict[object, tuple[str, ...]] = {}
        self._in_doubt: dict[str, int] = {}

    def is_fresh(self, revision: int) -> bool:
        """Whether the latest claim has told of that revision, or is yet to be answered."""
        return self._told is None or self._told >= revision

    def under_way(self) -> tuple[str, ...]:
        """The tasks that were claimed and about which nothing has been heard yet."""
        return tuple(sorted({task for tasks in self._unheard.values() for task in tasks}))

    def is_in_doubt(self, task: str) -> bool:
        """Whether it may have been granted in an answer that was lost, and is to be claimed for that."""
        return not self._is_stopped and task in self._in_doubt

    def claim(self, tasks: Iterable[str], held: Collection[str]) -> None:
        """Claim `tasks`, and what of them is pending again and again; returns at once.

        What is in doubt but `held` is asked about later, when the token it is held under is gone.
        """
        self._latest = place = object()
        self._is_stopped = False
        self._told = known = self._revision()
        if wanted := tuple(sorted({*tasks, *self._in_doubt.keys() - set(held)})):
            self._told = None
            self._unheard[place] = wanted
            running = self._spawn(self._until_answered(place, known, self._link.identity(), wanted))
            self._running[place] = running
            running.add_done_callback(lambda _: self._forget(place))

    def stop(self) -> None:
        """Claim nothing more; what is under way may still be granted."""
        self._latest = object()
        self._is_stopped = True

    def abandon(self) -> None:
        """Claim nothing more, and do not listen to what is under way: who asked for it is no more."""
        self.stop()
        self._unheard.clear()
        self._in_doubt.clear()
        for running in self._running.values():
            running.cancel()

    def _forget(self, place: object) -> None:
        self._unheard.pop(place, None)
        del self._running[place]

    async def _until_answered(
        self, place: object, known: int, identity: Identity, tasks: tuple[str, ...]
    ) -> None:
        """`known` is the revision whose news the claim was to bring, at the least."""
        tries = 0
        wait_ms = 0 if self._prepare() else self._wait_ms
        while tasks and place is self._latest:
            asked_at = self._link.clock.now()
            answer, sent_at = await self._ask(place, identity, tasks, wait_ms)
            self._note(place, known, answer)
            if isinstance(answer, Failure):
                if place is self._latest:
                    self._link.refused(RequestKind.CLAIM, identity, answer)
                elif not self._is_stopped and self._in_doubt.keys() & set(tasks):
                    self._doubted()
                return
            self._settle(identity, tasks, answer)
            self._unheard[place] = tasks = tuple(pending.task for pending in answer.pending)
            self._taken(answer, sent_at)
            tries = 0 if answer.granted or not wait_ms else tries + 1
            wait_ms = self._wait_ms
            if tasks and tries and self._link.clock.now() < asked_at + BRISK_S:
                await self._link.pause(tries)

    def _settle(self, identity: Identity, tasks: tuple[str, ...], answer: ClaimResponse) -> None:
        """A grant ends the doubt; so does any answer in a later generation, where older claims are void."""
        granted = {each.task for each in answer.granted}
        for task in tasks:
            if task in granted or self._in_doubt.get(task, identity.generation) < identity.generation:
                self._in_doubt.pop(task, None)

    def _note(self, place: object, known: int, answer: ClaimResponse | Failure) -> None:
        """The first answer of the latest claim says how fresh it is; an old manager's does not."""
        if place is self._latest and self._told is None:
            told = None if isinstance(answer, Failure) else answer.tasks_revision
            self._told = known if told is None else told

    async def _ask(
        self, place: object, identity: Identity, tasks: tuple[str, ...], wait_ms: int
    ) -> tuple[ClaimResponse | Failure, float]:
        """The answer, and when the try that brought it was sent."""
        sent_at = self._link.clock.now()

        async def ask() -> ClaimResponse | Failure:
            nonlocal sent_at
            sent_at = self._link.clock.now()
            answer = await self._link.manager.claim(request)
            if isinstance(answer, Failure) and answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._in_doubt |= dict.fromkeys(tasks, identity.generation)
            return answer

        request = ClaimRequest(
            member_id=identity.member_id,
            instance_id=self._link.instance_id,
            generation_id=identity.generation,
            tasks=tasks,
            wait_ms=wait_ms,
            prepare=self._prepare(),
        )
        return await self._link.persist(RequestKind.CLAIM, ask, lambda: place is self._latest), sent_at
