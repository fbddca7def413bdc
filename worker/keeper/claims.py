"""Claiming what is assigned: one batch at once, then what is pending until it is granted (PROTOCOL.md §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import Failure
from protocol.messages.ownership import ClaimRequest
from worker.membership.reactions import Asked

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable

    from protocol.messages.ownership import ClaimResponse
    from worker.keeper.manager import Line
    from worker.membership.effects import Identity

BRISK_S = 0.1
"""An answer that comes sooner and grants nothing was not held: asking at once again would ask without end."""


class Claims:
    """At most one claim of a worker counts: a newer one takes the place of the one before.

    The manager sees it the same way: a new claim of a member ends the wait of its earlier one. What an
    overtaken claim was granted is taken in all the same, because its tokens are the worker's.

    Args:
        line: to the manager.
        wait_ms: how long a claim of which nothing can be granted may wait.
        revision: the latest `tasks_revision` the worker knows.
        taken: is given each answer.
        spawn: runs a coroutine in the background.
    """

    def __init__(
        self,
        line: Line,
        *,
        wait_ms: int,
        revision: Callable[[], int],
        taken: Callable[[ClaimResponse], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._line = line
        self._wait_ms = wait_ms
        self._revision = revision
        self._taken = taken
        self._spawn = spawn
        self._latest = object()
        self._told: int | None = None
        self._running: dict[object, asyncio.Task[None]] = {}
        self._unheard: dict[object, tuple[str, ...]] = {}

    def is_fresh(self, revision: int) -> bool:
        """Whether the latest claim has told of that revision, or is yet to be answered."""
        return self._told is None or self._told >= revision

    def under_way(self) -> tuple[str, ...]:
        """The tasks that were claimed and about which nothing has been heard yet."""
        return tuple(sorted({task for tasks in self._unheard.values() for task in tasks}))

    def claim(self, tasks: Iterable[str]) -> None:
        """Claim `tasks`, and what of them is pending again and again; returns at once."""
        self._latest = place = object()
        self._told = known = self._revision()
        if wanted := tuple(sorted(tasks)):
            self._told = None
            self._unheard[place] = wanted
            running = self._spawn(self._until_settled(place, known, self._line.identity(), wanted))
            self._running[place] = running
            running.add_done_callback(lambda _: self._forget(place))

    def stop(self) -> None:
        """Claim nothing more; what is under way may still be granted."""
        self._latest = object()

    def abandon(self) -> None:
        """Claim nothing more, and do not listen to what is under way: who asked for it is no more."""
        self.stop()
        self._unheard.clear()
        for running in self._running.values():
            running.cancel()

    def _forget(self, place: object) -> None:
        self._unheard.pop(place, None)
        del self._running[place]

    async def _until_settled(
        self, place: object, known: int, identity: Identity, tasks: tuple[str, ...]
    ) -> None:
        """`known` is the revision whose news the claim was to bring, at the least."""
        tries = 0
        while tasks and place is self._latest:
            asked_at = self._line.clock.now()
            answer = await self._ask(place, identity, tasks)
            self._note(place, known, answer)
            if isinstance(answer, Failure):
                if place is self._latest:
                    self._line.refused(Asked.CLAIM, identity, answer)
                return
            self._unheard[place] = tasks = tuple(pending.task for pending in answer.pending)
            self._taken(answer)
            tries = 0 if answer.granted else tries + 1
            if tasks and tries and self._line.clock.now() < asked_at + BRISK_S:
                await self._line.pause(tries)

    def _note(self, place: object, known: int, answer: ClaimResponse | Failure) -> None:
        """The first answer of the latest claim says how fresh it is; an old manager's does not."""
        if place is self._latest and self._told is None:
            told = None if isinstance(answer, Failure) else answer.tasks_revision
            self._told = known if told is None else told

    async def _ask(
        self, place: object, identity: Identity, tasks: tuple[str, ...]
    ) -> ClaimResponse | Failure:
        request = ClaimRequest(
            member_id=identity.member_id,
            instance_id=self._line.instance_id,
            generation_id=identity.generation,
            tasks=tasks,
            wait_ms=self._wait_ms,
        )
        return await self._line.persist(
            Asked.CLAIM, lambda: self._line.manager.claim(request), lambda: place is self._latest
        )
