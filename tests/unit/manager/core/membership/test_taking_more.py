"""Members that are to have more, and join again for it (protocol §5, Pace)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.commands import StartRebalance
from manager.core.group import PACED_KEPT

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench

TASKS = ("t1", "t2", "t3")
REASON = "it takes more"


def promised(bench: Bench, instance_id: str | None = None) -> list[str]:
    """The leader, and a follower that is told that one task is still to move to it."""
    bench.create(*TASKS)
    bench.join(kind="sparkherd")
    bench.pass_time()
    [leader] = bench.group.members
    newcomer = bench.join(kind="sparkherd", instance_id=instance_id)
    bench.join(leader, kind="sparkherd")
    ids = [leader, str(newcomer.answer.member_id)]
    promise(bench, ids)
    return ids


def promise(bench: Bench, ids: list[str]) -> None:
    """The leader's assignment, by which the last task is still to move to the follower."""
    bench.settle(ids, {ids[0]: {"tasks": TASKS[1:]}, ids[1]: {"tasks": TASKS[:1], "more": 1}})


@pytest.mark.parametrize("is_new", [False, True])
def test_who_is_to_have_more_begins_a_rebalance_by_its_join(bench: Bench, *, is_new: bool) -> None:
    """Even if it says of itself what it said before, and after a manager has taken the group up anew."""
    _, follower = promised(bench)
    if is_new:
        bench.crash()
    assert bench.group.tasks.to_come == {follower: 1}
    assert bench.join(follower, kind="sparkherd").waits
    assert bench.state == "PreparingRebalance"


def test_who_has_all_it_was_to_have_begins_none(bench: Bench) -> None:
    """As any follower of which nothing has changed."""
    ids = promised(bench)
    bench.rejoin(ids[::-1], kind="sparkherd")
    bench.deal(ids, dict.fromkeys(TASKS, ids[1]))
    assert bench.group.tasks.to_come == {}
    assert not bench.join(ids[1], kind="sparkherd").waits


def test_a_static_member_s_next_process_is_to_have_more_as_well(bench: Bench) -> None:
    """It has the assignment of the one before."""
    promised(bench, "i")
    bench.join(kind="sparkherd", instance_id="i")
    [successor] = bench.group.tasks.to_come
    assert successor == bench.group.statics["i"]
    assert bench.join(successor, kind="sparkherd", instance_id="i").waits


def test_rounds_of_one_decision_leave_the_others_in_the_history(bench: Bench) -> None:
    """The last ten of a row are kept, in memory and in the store alike; others are no matter to them."""
    ids = promised(bench)
    before = [line.reason for line in bench.group.rebalances]
    for _ in range(PACED_KEPT + 5):
        bench.join(ids[1], kind="sparkherd", reason=REASON)
        bench.join(ids[0], kind="sparkherd")
        promise(bench, ids)
    kept = [line.reason for line in bench.group.rebalances]
    assert kept == [*before, *[REASON] * PACED_KEPT]
    assert bench.group.rebalances[-1].generation_id == bench.group.generation
    for _ in range(PACED_KEPT + 5):
        bench.ask(StartRebalance(reason=REASON))
        bench.rejoin(ids, kind="sparkherd")
        promise(bench, ids)
    assert len(bench.group.rebalances) == len(kept) + PACED_KEPT + 5
    bench.crash()
    assert len(bench.group.rebalances) == len(kept) + PACED_KEPT + 5
