from __future__ import annotations

import pytest

from tests.unit.manager.core.bench import WALL, Bench


def told(bench: Bench) -> list[tuple[int, str]]:
    """When what happened, oldest first, in milliseconds of the fake clock."""
    return [(line.at_ms - WALL, line.event) for line in bench.group.history]


def test_each_deadline_of_a_chain_is_seen_at_its_own_time_in_one_jump() -> None:
    """Each of these deadlines is set by the one before it; a clock that looks at the end only is late."""
    bench = Bench(initial_rebalance_delay_ms=1000, group_retention_ms=5000)
    asks = [bench.join(instance_id=name, rebalance_ms=3000, session_ms=60_000) for name in ("a", "b")]
    bench.pass_time(9_999)
    assert [ask.error for ask in asks] == ["NONE", "NONE"]
    assert told(bench) == [
        (1000, "Empty -> PreparingRebalance"),
        (1000, "rebalance: a-id1 joins"),
        (3000, "PreparingRebalance -> AwaitingSync"),
        (6000, "a-id1 removed: it did not sync in time"),
        (6000, "b-id2 removed: it did not sync in time"),
        (6000, "AwaitingSync -> PreparingRebalance"),
        (6000, "rebalance: a-id1, b-id2 did not sync"),
        (6000, "PreparingRebalance -> Empty"),
    ]
    bench.pass_time(1)
    assert bench.coordinator.names() == ()


@pytest.mark.parametrize("step_ms", [1, 7, 250, 30_000])
def test_a_jump_and_many_small_steps_are_the_same(bench: Bench, step_ms: int) -> None:
    """A broken connection, a join phase and a sync phase that run out, then a static member that goes."""
    dynamic, _ = bench.stable(None, "s", session_ms=12_000, rebalance_ms=4_000)
    bench.disconnect(bench.heartbeat(dynamic, wait_ms=4_000))
    bench.announced_id(session_ms=5_500)
    newcomer = bench.join(session_ms=12_000, rebalance_ms=4_000)
    while bench.now < 31_000:
        bench.pass_time(min(step_ms, 31_000 - bench.now))
    assert newcomer.answer.generation_id == 3
    assert [at for at, event in told(bench) if " removed: " in event] == [2_000, 9_000, 17_000]
    assert (bench.state, bench.group.generation) == ("Empty", 4)
