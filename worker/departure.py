"""Going in order: the tasks move away one by one, then the worker leaves (`--stop-timeout-ms`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from protocol.errors import Failure
from worker.waiting import first

if TYPE_CHECKING:
    from worker.clock import Clock

log = structlog.get_logger(__name__)


class Drains(Protocol):
    """Whoever has tasks moved away; `worker.client.group.GroupClient` does."""

    async def drain(self, member_id: str) -> object | Failure:
        """Have every task of a member moved away."""
        ...


class Holds(Protocol):
    """Whoever runs the tasks; `worker.keeper.keeper.Keeper` does."""

    async def own_nothing(self) -> None:
        """Wait until no task is owned."""
        ...


async def move_away(member_id: str, *, manager: Drains, tasks: Holds, clock: Clock, within_s: float) -> bool:
    """Have the group take over what the worker runs, each task as soon as its query has stopped here.

    Args:
        member_id: the worker's.
        manager: who drains it.
        tasks: what it runs.
        clock: for the limit.
        within_s: how long that may take, in seconds.

    Returns:
        Whether the rest can be done in order: nothing is owned any more, or the manager would not drain and
        the worker has to stop everything by itself. False when the time is up.
    """
    answer = await manager.drain(member_id)
    if isinstance(answer, Failure):
        log.info("not drained, the queries are stopped first", code=answer.code, why=answer.message)
        return True
    if await first(tasks.own_nothing(), clock.sleep(within_s)):
        return True
    log.warning("draining took too long", within_s=within_s)
    return False
