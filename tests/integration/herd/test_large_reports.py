"""Reports that are larger than the manager takes, over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from protocol.messages.lag import MOST_PARTITIONS, PartitionLag, TaskLag
from tests.integration.herd.herd import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.herd.herd import Herd

TASKS = tuple(f"t{number}" for number in range(20))
LAG = TaskLag(
    at_ms=1,
    rows=9 * MOST_PARTITIONS,
    partitions=tuple(
        PartitionLag(topic="t" * 249, partition=each, committed=0, end=9, behind=9)
        for each in range(MOST_PARTITIONS)
    ),
)


async def test_what_the_manager_refuses_as_too_large_is_told_in_parts(
    open_herd: Callable[..., Awaitable[Herd]],
) -> None:
    """This one takes a little less than a worker tells at once; the lag of every task arrives."""
    herd = await open_herd()
    herd.hire("anna", lag_interval_ms=1000)
    await herd.create(*TASKS)
    await herd.until_all_run(TASKS, 1)
    herd.lags("anna", dict.fromkeys(TASKS, LAG))
    async with asyncio.timeout(PATIENCE_S):
        while set(await rows(herd)) != {LAG.rows}:
            pass
    [shown] = {len((await herd.ask("GET", f"/tasks/{task}"))["lag"]["partitions"]) for task in TASKS}
    assert shown == MOST_PARTITIONS


async def rows(herd: Herd) -> list[int | None]:
    """How far each task is behind, as the manager shows it."""
    tasks = (await herd.ask("GET", "/tasks"))["tasks"]
    return [task["lag"] and task["lag"]["rows"] for task in tasks]
