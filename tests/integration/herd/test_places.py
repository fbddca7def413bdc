"""Workers that take only so many tasks, and tasks that want a worker to themselves, in a whole herd."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from assignors.unassigned import NO_ROOM, NONE_TO_SPARE
from tests.integration.herd.herd import DEFINITION, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.herd.herd import Herd

    OpenHerd = Callable[..., Awaitable[Herd]]


async def until_cause(herd: Herd, task: str, cause: str | None) -> None:
    """Wait until the manager shows that cause."""
    async with asyncio.timeout(PATIENCE_S):
        while (await herd.ask("GET", f"/tasks/{task}/status"))["cause"] != cause:
            pass


async def test_what_fits_nowhere_waits_for_another_worker(open_herd: OpenHerd) -> None:
    """What runs is not touched, neither for what waits nor when a worker comes for it."""
    herd = await open_herd()
    herd.hire("anna", max_tasks=1)
    herd.hire("berta", max_tasks=1)
    await herd.create("t1", "t2")
    await herd.until_all_run(("t1", "t2"), 2)
    await herd.create("t3")
    await until_cause(herd, "t3", NO_ROOM)
    herd.hire("carla", max_tasks=1)
    await herd.until_all_run(("t1", "t2", "t3"), 3)
    assert herd.starts() == {"t1": 1, "t2": 1, "t3": 1}


async def test_an_exclusive_task_is_alone_or_waits(open_herd: OpenHerd) -> None:
    """Others come first; with a second worker it has one, and a change of that alone restarts no query."""
    herd = await open_herd()
    herd.hire("anna")
    await herd.create("t1", "t2")
    await herd.until_all_run(("t1", "t2"), 1)
    alone: dict[str, Any] = {"task": "own", "definition": {**DEFINITION, "exclusive": True}}
    assert (await herd.ask("POST", "/tasks", alone))["error"] == "NONE"
    await until_cause(herd, "own", NONE_TO_SPARE)
    herd.hire("berta")
    await herd.until(lambda: herd.running() == {"anna": {"t1", "t2"}, "berta": {"own"}})
    assert herd.starts() == {"t1": 1, "t2": 1, "own": 1}
