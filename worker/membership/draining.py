"""Going in order: the tasks move away one by one, then the worker leaves (`--stop-timeout-ms`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from protocol.errors import Failure
from worker.waiting import first

if TYPE_CHECKING:
    from worker.clock import Clock

log = structlog.get_logger(__name__)


class DrainClient(Protocol):
    """Whoever has tasks moved away; `worker.client.group_client.GroupClient` does."""

    async def drain(self, member_id: str) -> object | Failure:
        """Have every task of a member moved away."""
        ...


class TaskHolder(Protocol):
    """Whoever runs the tasks; `worker.tasks.runner.TaskRunner` does."""

    async def own_nothing(self) -> None:
        """Wait until no task is owned."""
        ...


class ManagerWatch(Protocol):
    """Whoever knows which managers there are; `worker.client.discovery.Discovery` does."""

    async def until_alone(self) -> None:
        """Wait until every manager refuses connections."""
        ...


async def move_away(
    member_id: str,
    *,
    manager: DrainClient,
    managers: ManagerWatch,
    tasks: TaskHolder,
    clock: Clock,
    within_s: float,
) -> bool:
    """Have the group take over what the worker runs, each task as soon as its query has stopped here.

    Args:
        member_id: the worker's.
        manager: who drains it.
        managers: all of them.
        tasks: what it runs.
        clock: for the limit.
        within_s: how long that may take, in seconds.

    Returns:
        Whether the rest can be done in order: nothing is owned any more, or there is no manager to drain it,
        or none any more, and the worker has to stop everything by itself. False when the time is up.
    """
    answer = await manager.drain(member_id)
    if isinstance(answer, Failure):
        log.info("not drained, the queries are stopped first", code=answer.code, why=answer.message)
        return True
    if await first(first(tasks.own_nothing(), managers.until_alone()), clock.sleep(within_s)):
        return True
    log.warning("draining took too long", within_s=within_s)
    return False
