from __future__ import annotations

from typing import Any

import pytest

from tests.unit.manager.core.bench import Bench


def test_a_returning_follower_gets_its_place_and_nobody_notices(bench: Bench) -> None:
    """New id, same generation, the old assignment; the old id is fenced."""
    leader, follower = bench.stable("a", "b")
    back = bench.join(instance_id="b").answer
    assert (back.generation_id, back.leader_id, back.members, bench.state) == (2, leader, (), "Stable")
    assert back.member_id != follower
    again = bench.sync(back.member_id, instance_id="b").answer
    assert bytes(again.assignment) == b'{"for":"%s"}' % follower.encode()
    assert bench.heartbeat(follower, instance_id="b").error == "FENCED_INSTANCE_ID"
    assert bench.heartbeat(follower).error == "UNKNOWN_MEMBER_ID"
    assert list(bench.group.members) == [leader, back.member_id]


def test_a_returning_leader_skips_the_assignment(bench: Bench) -> None:
    """It leads on, with the member list and no need to assign."""
    bench.stable("a", "b")
    back = bench.join(instance_id="a").answer
    assert (back.skip_assignment, back.leader_id) == (True, back.member_id)
    assert len(back.members) == 2
    assert bench.state == "Stable"


def test_a_return_with_another_protocol_choice_rebalances(bench: Bench) -> None:
    """The chosen protocol would change, so everybody has to know."""
    bench.stable("a", protocols=("x", "y"))
    assert bench.join(instance_id="a", protocols=("y", "x")).answer.generation_id == 2


TOLD = {"formats": {"names": ["kafka"]}, "labels": {"zone": "east"}, "max_tasks": 2}
OTHERS: tuple[dict[str, Any], ...] = (
    {"formats": {"names": []}},
    {"formats": None},
    {"labels": {}},
    {"max_tasks": 1},
    {"max_tasks": None},
)


@pytest.mark.parametrize("changed", OTHERS)
def test_a_return_that_may_run_other_tasks_rebalances(bench: Bench, changed: dict[str, Any]) -> None:
    """Without the package that its tasks need it would get them, with room for more it would get none."""
    bench.stable("a", kind="sparkherd", metadata=TOLD)
    same = bench.join(instance_id="a", kind="sparkherd", metadata={**TOLD, "owned": {"t": 1}})
    assert same.answer.generation_id == 1
    other = bench.join(instance_id="a", kind="sparkherd", metadata={**TOLD, **changed})
    assert other.answer.generation_id == 2


def test_a_return_while_awaiting_sync_rebalances(bench: Bench) -> None:
    """The leader's list would name an id that is fenced."""
    leader, follower = bench.stable("a", "b")
    bench.join(leader, "a", metadata=1)
    bench.join(follower, "b")
    waiting = bench.sync(follower)
    assert bench.join(instance_id="b").waits
    assert waiting.error == "FENCED_INSTANCE_ID"
    assert bench.state == "PreparingRebalance"


def test_the_parked_requests_of_the_old_id_are_fenced(bench: Bench) -> None:
    """Its join, its held heartbeat: FENCED_INSTANCE_ID, once."""
    leader, follower = bench.stable("a", "b")
    held = bench.heartbeat(follower, instance_id="b", wait_ms=3000)
    bench.join(instance_id="b")
    assert held.error == "FENCED_INSTANCE_ID"
    parked = bench.join(leader, "a", metadata=1)
    assert bench.join(instance_id="a").waits
    assert parked.error == "FENCED_INSTANCE_ID"


@pytest.mark.parametrize("limit", [1, 2])
def test_a_replacement_is_welcome_in_a_full_group(limit: int) -> None:
    """It takes no new room."""
    bench = Bench(group_max_size=limit)
    bench.stable(*"ab"[:limit])
    assert bench.join(instance_id="a").error == "NONE"
    assert bench.join().error == "GROUP_MAX_SIZE_REACHED"


def test_a_crash_forgets_no_replacement(bench: Bench) -> None:
    """The old id stays fenced across a reload, the new one knows its assignment."""
    old, _ = bench.stable("a", "b")
    new = bench.join(instance_id="a").answer.member_id
    bench.crash()
    assert bench.heartbeat(old, instance_id="a").error == "FENCED_INSTANCE_ID"
    assert bench.heartbeat(new, instance_id="a").error == "NONE"
    assert bench.group.leader_id == new
