from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.herd.herd import Herd

    OpenHerd = Callable[..., Awaitable[Herd]]

TASKS = ("t1", "t2", "t3", "t4")


async def two_workers(herd: Herd, **settings: object) -> None:
    """Anna and berta share four tasks; `settings` are berta's.

    The tasks are there before anybody is: one that is created while the group comes together is dealt with
    the others, and has it come together again a moment later.
    """
    await herd.create(*TASKS)
    herd.hire("anna")
    herd.hire("berta", **settings)
    await herd.until_all_run(TASKS, 2)


async def test_a_killed_worker_s_tasks_run_elsewhere_and_no_other_is_touched(open_herd: OpenHerd) -> None:
    """By default at once: its connections are closed, which is word enough."""
    herd = await open_herd()
    await two_workers(herd)
    before, lost = herd.starts(), herd.running()["berta"]
    await herd.kill("berta")
    await herd.until_all_run(TASKS, 1)
    assert herd.starts() - before == dict.fromkeys(lost, 1)


async def test_tasks_move_to_a_newcomer_a_few_at_a_time(open_herd: OpenHerd) -> None:
    """In a rebalance for each few, when those before are started; no task is started twice for that."""
    herd = await open_herd()
    await herd.create(*TASKS)
    herd.hire("anna", move_at_once=1)
    await herd.until_all_run(TASKS, 1)
    before, generation = herd.starts(), (await herd.ask("GET", ""))["generation_id"]
    herd.hire("berta")
    await herd.until_all_run(TASKS, 2)
    await herd.until(lambda: [len(share) for share in herd.running().values()] == [2, 2])
    assert herd.starts() - before == dict.fromkeys(herd.running()["berta"], 1)
    assert (await herd.ask("GET", ""))["generation_id"] == generation + 2


async def test_a_lost_worker_that_returns_gets_its_tasks_back(open_herd: OpenHerd) -> None:
    """With a delay they wait for it, and say so; nobody else's tasks are touched."""
    herd = await open_herd(lost_task_delay_ms=600_000)
    await two_workers(herd)
    before, lost = herd.starts(), herd.running()["berta"]
    generation = (await herd.ask("GET", ""))["generation_id"]
    await herd.kill("berta")
    while (await herd.ask("GET", ""))["generation_id"] == generation:
        pass
    [cause] = {(await herd.ask("GET", f"/tasks/{task}/status"))["cause"] for task in lost}
    assert "kept for berta" in cause
    herd.hire("berta")
    await herd.until_all_run(TASKS, 2)
    assert herd.running()["berta"] == lost
    assert herd.starts() - before == dict.fromkeys(lost, 1)


async def test_a_lost_worker_that_stays_away_is_waited_for_no_longer_than_the_delay(
    open_herd: OpenHerd,
) -> None:
    """Then its tasks are anybody's."""
    herd = await open_herd(lost_task_delay_ms=300)
    await two_workers(herd)
    await herd.kill("berta")
    await herd.until_all_run(TASKS, 1)


async def test_a_static_worker_that_restarts_gets_its_tasks_back_and_nobody_notices(
    open_herd: OpenHerd,
) -> None:
    """Within its session: the same generation, and only its own tasks are started anew."""
    herd = await open_herd()
    await two_workers(herd, instance_id="b", session_timeout_ms=30_000)
    before, own = herd.starts(), herd.running()["berta"]
    generation = (await herd.ask("GET", ""))["generation_id"]
    await herd.kill("berta")
    herd.hire("berta", instance_id="b", session_timeout_ms=30_000)
    await herd.until_all_run(TASKS, 2)
    assert herd.running()["berta"] == own
    assert herd.starts() - before == dict.fromkeys(own, 1)
    assert (await herd.ask("GET", ""))["generation_id"] == generation


async def test_a_drained_worker_has_nothing_until_the_drain_is_undone(open_herd: OpenHerd) -> None:
    """Its tasks move, the others' do not; it stays a member."""
    herd = await open_herd()
    await two_workers(herd)
    before, moved = herd.starts(), herd.running()["berta"]
    drain = f"/members/{await herd.member('berta')}/drain"
    assert (await herd.ask("POST", drain))["error"] == "NONE"
    await herd.until_all_run(TASKS, 1)
    assert herd.starts() - before == dict.fromkeys(moved, 1)
    assert [m["draining"] for m in (await herd.ask("GET", ""))["members"]].count(True) == 1
    await herd.ask("DELETE", drain)
    await herd.until_all_run(TASKS, 2)


async def test_what_moves_is_made_ready_while_its_owner_stops_it(open_herd: OpenHerd) -> None:
    """It is not started before the owner has let go, and its start takes what is there."""
    herd = await open_herd()
    await two_workers(herd)
    anna, berta, moved = herd.engine("anna"), herd.engine("berta"), herd.running()["berta"]
    anna.prepares = len(TASKS)
    for task in moved:
        berta.query(task).hold_stops()
    await herd.ask("POST", f"/members/{await herd.member('berta')}/drain")
    await herd.until(lambda: len(anna.prepared) == len(moved))
    assert {each.query.task for each in anna.prepared} == moved
    assert herd.running() == {"anna": set(TASKS) - moved, "berta": moved}
    for task in moved:
        berta.query(task).let_stop()
    await herd.until_all_run(TASKS, 1)
    assert set(anna.taken) == set(anna.prepared)


async def test_a_burst_of_creations_makes_few_rebalances(open_herd: OpenHerd) -> None:
    """The set of tasks is left to settle for a moment, a second at the most."""
    herd = await open_herd()
    herd.hire("anna", session_timeout_ms=30_000)
    await herd.create("first")
    await herd.until_all_run(["first"], 1)
    before = (await herd.ask("GET", ""))["generation_id"]
    burst = [f"t{number}" for number in range(500)]
    await asyncio.gather(*(herd.create(task) for task in burst))
    await herd.until_all_run(["first", *burst], 1)
    assert (await herd.ask("GET", ""))["generation_id"] - before <= 50
    assert set(herd.starts().values()) == {1}


async def test_a_worker_whose_manager_has_gone_in_order_ends_at_once(open_herd: OpenHerd) -> None:
    """Both are told to stop, as when a machine goes down: nobody is left to release anything to.

    A session, and so a lease, that outlasts the patience of the test shows that neither is waited for.
    """
    herd = await open_herd()
    herd.hire("anna", session_timeout_ms=900_000)
    await herd.create(*TASKS)
    await herd.until_all_run(TASKS, 1)
    await herd.stop_manager()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await herd.end_of("anna") == 0
    assert herd.running() == {"anna": set()}
