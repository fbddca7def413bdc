from __future__ import annotations

import pytest

from manager.metrics.meter import Meter
from tests.unit.manager.core.bench import SESSION_MS
from tests.unit.manager.metrics.watched import WatchedBench

REQUESTS = "sparkherd_requests_total"


def test_requests_are_counted_by_their_answers() -> None:
    """Held or not, refused or not."""
    bench = WatchedBench()
    [member] = bench.stable(None)
    bench.heartbeat(member)
    bench.heartbeat(member)
    bench.heartbeat(member, generation=7)
    assert bench.value(REQUESTS, operation="heartbeat", code="NONE") == 2
    assert bench.value(REQUESTS, operation="heartbeat", code="ILLEGAL_GENERATION") == 1
    assert bench.value(REQUESTS, operation="join", code="NONE") is None


def test_a_zombies_tokens_are_counted_one_by_one() -> None:
    """The answer as a whole is NONE: the refusal is inside."""
    bench = WatchedBench()
    ids = bench.herd(1, "t1", "t2")
    bench.report(ids[0], "t1", 0)
    bench.release(ids[0], t1=0, t2=0)
    assert bench.value("sparkherd_stale_tokens_total", operation="report") == 1
    assert bench.value("sparkherd_stale_tokens_total", operation="release") == 2


def test_groups_are_read_when_somebody_asks() -> None:
    """States, generation, members and tasks as they are then."""
    bench = WatchedBench()
    ids = bench.herd(2, "t1", "t2", "t3")
    assert bench.value("sparkherd_group_state", group="g", state="Stable") == 1
    assert bench.value("sparkherd_group_generation", group="g") == bench.group.generation
    assert bench.series("sparkherd_group_members") == {"active": 2}
    assert bench.series("sparkherd_group_tasks") == {"STARTING": 3}
    bench.join(ids[0], kind="sparkherd", metadata={"other": "offer"})
    assert bench.series("sparkherd_group_members") == {"parked": 1, "awaited": 1}
    bench.pass_time(SESSION_MS)
    assert bench.series("sparkherd_group_tasks") == {"UNASSIGNED": 3}


def test_storage_trouble_shows_at_the_scrape() -> None:
    """It is a gauge for an alarm."""
    bench = WatchedBench()
    assert bench.value("sparkherd_storage_up") == 1
    bench.is_healthy = False
    assert bench.value("sparkherd_storage_up") == 0


def test_a_failed_transaction_is_counted_and_its_rows_are_not() -> None:
    """Both are in the histogram of times."""
    meter = Meter()
    with meter.commit(3):
        pass
    with pytest.raises(OSError, match="full"), meter.commit(5):
        raise OSError("full")
    value = meter.instruments.registry.get_sample_value
    assert value("sparkherd_storage_rows_total") == 3
    assert value("sparkherd_storage_commit_failures_total") == 1
    assert value("sparkherd_storage_commit_seconds_count") == 2


def test_managers_in_one_process_count_apart() -> None:
    """Each has a registry of its own."""
    one, other = Meter(), Meter()
    one.lease_changed("taken", 4)
    assert (
        one.instruments.registry.get_sample_value("sparkherd_lease_changes_total", {"change": "taken"}) == 4
    )
    assert (
        other.instruments.registry.get_sample_value("sparkherd_lease_changes_total", {"change": "taken"}) == 0
    )
