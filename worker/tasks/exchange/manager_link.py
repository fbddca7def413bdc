"""What is asked of the manager about tasks: three batch requests, asked again while nobody can answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from protocol.errors import Failure
from worker.membership.reactions import LOSSES, Reaction, RequestKind, reaction_to
from worker.waiting import MANAGER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.messages.ownership import (
        ClaimRequest,
        ClaimResponse,
        LagRequest,
        LagResponse,
        ReleaseRequest,
        ReportRequest,
        TaskErrorsResponse,
    )
    from worker.clock import Clock
    from worker.membership.events import Identity

Answer = TypeVar("Answer")


class TaskCoordinator(Protocol):
    """Whoever answers claims, releases and reports; `worker.client.group_client.GroupClient` does."""

    async def claim(self, request: ClaimRequest) -> ClaimResponse | Failure:
        """Take tasks over."""
        ...

    async def release(self, request: ReleaseRequest) -> TaskErrorsResponse | Failure:
        """Let go of tasks."""
        ...

    async def report(self, request: ReportRequest) -> TaskErrorsResponse | Failure:
        """Tell how tasks are doing."""
        ...

    async def lag(self, request: LagRequest) -> LagResponse | Failure:
        """Tell how far tasks that nobody owns are behind, and hear which those are."""
        ...


@dataclass(frozen=True, slots=True)
class ManagerLink:
    """The way to the manager, and what is said on each call.

    Args:
        manager: who answers.
        clock: for waiting between tries.
        chance: random numbers in [0, 1), for the jitter of the back-off.
        instance_id: of a static member.
        identity: who the worker is at the moment.
        refused: is told of a failure, and to what and under which identity it was the answer.
    """

    manager: TaskCoordinator
    clock: Clock
    chance: Callable[[], float]
    instance_id: str | None
    identity: Callable[[], Identity]
    refused: Callable[[RequestKind, Identity, Failure], None]

    async def pause(self, tries: int) -> None:
        """Wait a while after a request failed, the more often the longer."""
        await self.clock.sleep(MANAGER.delay_s(tries, self.chance()))

    async def persist(
        self,
        asked: RequestKind,
        request: Callable[[], Awaitable[Answer | Failure]],
        matters: Callable[[], bool],
    ) -> Answer | Failure:
        """The answer to `request`, asked again while the manager cannot be reached or has no time.

        When the answer no longer `matters`, the failure of the last try.
        """
        tries = 0
        while True:
            answer = await request()
            if not isinstance(answer, Failure) or not is_passing(answer, asked) or not matters():
                return answer
            await self.pause(tries)
            tries += 1


def is_passing(failure: Failure, asked: RequestKind) -> bool:
    """Whether the same request may be answered a little later (protocol §7)."""
    return reaction_to(failure.code, asked) is Reaction.RETRY


def is_loss(failure: Failure, asked: RequestKind) -> bool:
    """Whether it costs the member its tasks."""
    return reaction_to(failure.code, asked) in LOSSES
