from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.integration.herd.rules import CHOOSY, OUT_OF_ORDER, STOP_THE_WORLD, StopTheWorld

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.integration.herd.herd import Herd

    OpenHerd = Callable[..., Awaitable[Herd]]

TASKS = ("t1", "t2", "t3", "t4", "t5", "t6")
NAMES = ("anna", "berta", "carla")


@pytest.fixture(autouse=True)
def failures() -> Iterator[Callable[[], set[str]]]:
    """The assignors that others had to stand in for; only the broken one ever is among them.

    And whatever a test does, an eager assignor never sees a task that somebody still owns.
    """
    StopTheWorld.still_owned.clear()
    with capture_logs() as logs:

        def failures() -> set[str]:
            return {entry["assignor"] for entry in logs if "stands in" in entry["event"]}

        yield failures
        assert failures() <= {"out-of-order"}
    assert StopTheWorld.still_owned == []


async def start(open_herd: OpenHerd, *assignor: str) -> Herd:
    """Three workers with these assignors share six tasks."""
    herd = await open_herd()
    for name in NAMES:
        herd.hire(name, assignor=assignor)
    await herd.create(*TASKS)
    await herd.until_all_run(TASKS, 3)
    return herd


async def replace(herd: Herd, name: str, *assignor: str) -> None:
    """One step of a rolling change: the worker ends and comes back with other assignors."""
    await herd.kill(name)
    await herd.until_all_run(TASKS, 2)
    herd.hire(name, assignor=assignor)
    await herd.until_all_run(TASKS, 3)


async def protocol(herd: Herd) -> str:
    """The assignor the group has chosen."""
    return str((await herd.ask("GET", ""))["protocol_name"])


async def test_an_eager_assignor_stops_the_world(open_herd: OpenHerd) -> None:
    """Every query is stopped in order and started once more, moved or not, when somebody joins."""
    herd = await start(open_herd, STOP_THE_WORLD)
    before = herd.starts()
    herd.hire("dora", assignor=(STOP_THE_WORLD,))
    await herd.until_all_run(TASKS, 4)
    assert herd.starts() - before == dict.fromkeys(TASKS, 1)
    stopped = [query for engine in herd._engines for query in engine.started if not query.is_running]
    assert {tuple(query.stops) for query in stopped} == {(30.0,)}


async def test_a_rolling_change_of_the_assignor_is_a_vote(open_herd: OpenHerd) -> None:
    """First all learn the new one, then all forget the old one; every task runs after each step."""
    herd = await start(open_herd, "roundrobin")
    chosen = []
    for name in NAMES:
        await replace(herd, name, "sticky", "roundrobin")
        chosen.append(await protocol(herd))
    for name in NAMES:
        await replace(herd, name, "sticky")
        chosen.append(await protocol(herd))
    assert chosen == ["roundrobin", "roundrobin", "sticky", "sticky", "sticky", "sticky"]


async def test_from_eager_to_cooperative_in_two_rolls(open_herd: OpenHerd) -> None:
    """As in KIP-429: while a worker knows an eager assignor it lets go of all, whichever is chosen."""
    herd = await start(open_herd, STOP_THE_WORLD)
    for name in NAMES:
        await replace(herd, name, "sticky", STOP_THE_WORLD)
    assert await protocol(herd) == "sticky"
    before = herd.starts()
    await herd.ask("POST", "/rebalance", {"reason": "to see who lets go"})
    await herd.until(lambda: herd.starts() - before == dict.fromkeys(TASKS, 1))
    for name in NAMES:
        await replace(herd, name, "sticky")
    before = herd.starts()
    herd.hire("dora")
    await herd.until_all_run(TASKS, 4)
    assert (herd.starts() - before).total() == 1


async def test_from_cooperative_to_eager_in_two_rolls(open_herd: OpenHerd) -> None:
    """When the eager one can be chosen, everybody knows it, and so everybody has let go."""
    herd = await start(open_herd, "sticky")
    chosen = []
    for names in ((STOP_THE_WORLD, "sticky"), (STOP_THE_WORLD,)):
        for name in NAMES:
            await replace(herd, name, *names)
            chosen.append(await protocol(herd))
    assert chosen == ["sticky", "sticky", *["stop-the-world"] * 4]


async def test_a_worker_without_a_common_assignor_does_not_start(open_herd: OpenHerd) -> None:
    """It says so and ends, and the group does not notice."""
    herd = await start(open_herd, "sticky")
    before = herd.starts()
    herd.hire("dora", assignor=("range",))
    assert await herd._worker["dora"] == 5
    assert herd.starts() == before


async def test_a_herd_lives_with_an_assignor_that_fails(
    open_herd: OpenHerd, failures: Callable[[], set[str]]
) -> None:
    """The leader says so, gives the tasks out all the same, and moves none."""
    herd = await open_herd()
    herd.hire("anna", assignor=(OUT_OF_ORDER,))
    await herd.create(*TASKS)
    await herd.until_all_run(TASKS, 1)
    before = herd.starts()
    herd.hire("berta", assignor=(OUT_OF_ORDER,))
    await herd.create("t7")
    await herd.until_all_run([*TASKS, "t7"], 2)
    assert herd.starts() - before == {"t7": 1}
    assert failures() == {"out-of-order"}


async def test_a_task_that_the_assignor_left_out_says_so(open_herd: OpenHerd) -> None:
    """UNASSIGNED, with the reason where whoever looks for it will look."""
    herd = await open_herd()
    herd.hire("anna", assignor=(CHOOSY,))
    await herd.create(*TASKS)
    await herd.until_all_run(set(TASKS) - {"t4"}, 1)
    status = await herd.ask("GET", "/tasks/t4/status")
    assert (status["state"], status["cause"]) == ("UNASSIGNED", "the assignor left it out")
