from __future__ import annotations

import pytest

from manager.core.commands import DeleteGroup, DescribeGroup, ListRebalances, RemoveMember, StartRebalance
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import (
    CommitOffsetsRequest,
    DeleteOffsetsRequest,
    FetchOffsetsRequest,
    OffsetToCommit,
)
from tests.unit.manager.core.bench import SESSION_MS, WALL, Ask, Bench


def commit(bench: Bench, member_id: str, generation: int, metadata: str = "", **offsets: object) -> Ask:
    return bench.ask(
        CommitOffsetsRequest(
            member_id=member_id,
            generation_id=generation,
            offsets={k: OffsetToCommit(encode_opaque(v), metadata) for k, v in offsets.items()},
        )
    )


def fetch(bench: Bench, *keys: str) -> dict[str, bytes]:
    answer = bench.ask(FetchOffsetsRequest(keys=keys or None)).answer
    return {key: bytes(entry.offset) for key, entry in answer.offsets.items()}


def test_offsets_are_fenced_by_the_generation(bench: Bench) -> None:
    """The order of protocol §4, Offsets, line by line."""
    assert commit(bench, "", 3, k=1).error == "GROUP_ID_NOT_FOUND"
    assert commit(bench, "", -1, k={"x": 1}).answer.offsets == {"k": "NONE"}
    assert commit(bench, "x", 0, k=2).error == "UNKNOWN_MEMBER_ID"
    [member] = bench.stable(None)
    assert commit(bench, "", -1, k=5).error == "UNKNOWN_MEMBER_ID"
    assert commit(bench, member, -1, k=5).error == "ILLEGAL_GENERATION"
    assert commit(bench, member, 1, k=7).answer.offsets == {"k": "NONE"}
    bench.join()
    assert commit(bench, member, 1, k=8).answer.offsets == {"k": "NONE"}
    bench.join(member)
    assert commit(bench, member, 2, k=9).error == "REBALANCE_IN_PROGRESS"
    assert fetch(bench) == {"k": b"8"}


def test_a_commit_keeps_a_session_alive(bench: Bench, member: str) -> None:
    """Every accepted request of a member renews it."""
    bench.pass_time(9_000)
    commit(bench, member, 1, k=1)
    bench.pass_time(9_000)
    assert bench.state == "Stable"


def test_long_metadata_is_refused_for_its_key_only() -> None:
    """In bytes, not characters."""
    bench = Bench(offset_metadata_max_bytes=4)
    assert commit(bench, "", -1, "ää", a=1).answer.offsets == {"a": "NONE"}
    assert commit(bench, "", -1, "äää", b=1).answer.offsets == {"b": "OFFSET_METADATA_TOO_LARGE"}
    assert fetch(bench, "a", "b") == {"a": b"1", "b": b"null"}


def test_offsets_are_deleted_in_an_empty_group_only(bench: Bench) -> None:
    """NON_EMPTY_GROUP otherwise, and of an unknown group nothing."""
    assert bench.ask(DeleteOffsetsRequest(keys=("k",))).error == "GROUP_ID_NOT_FOUND"
    commit(bench, "", -1, k=1, left=2)
    [member] = bench.stable(None)
    assert bench.ask(DeleteOffsetsRequest(keys=("k",))).error == "NON_EMPTY_GROUP"
    bench.leave((member, None))
    assert bench.ask(DeleteOffsetsRequest(keys=("k", "no"))).answer.offsets == {"k": "NONE", "no": "NONE"}
    assert fetch(bench) == {"left": b"2"}


def test_a_deleted_group_is_dead_until_that_is_durable_and_then_brand_new(bench: Bench, member: str) -> None:
    """COORDINATOR_NOT_AVAILABLE in between, generation 1 afterwards."""
    assert bench.ask(DeleteGroup()).error == "NON_EMPTY_GROUP"
    bench.leave((member, None))
    assert bench.ask(DeleteGroup()).error == "NONE"
    assert bench.join().error == "COORDINATOR_NOT_AVAILABLE"
    assert bench.ask(DescribeGroup()).error == "COORDINATOR_NOT_AVAILABLE"
    bench.coordinator.bury("g")
    assert bench.ask(DescribeGroup()).error == "GROUP_ID_NOT_FOUND"
    assert bench.store == {}
    bench.stable(None)
    assert bench.group.generation == 1


def test_an_empty_group_without_offsets_or_tasks_is_forgotten_after_its_retention() -> None:
    """One with offsets is kept."""
    bench = Bench(group_retention_ms=5_000)
    [member] = bench.stable(None)
    bench.leave((member, None))
    bench.pass_time(4_999)
    assert bench.state == "Empty"
    bench.pass_time(1)
    assert (bench.coordinator.names(), bench.store) == ((), {})
    kept = Bench(group_retention_ms=5_000)
    [member] = kept.stable(None)
    commit(kept, member, 1, k=1)
    kept.leave((member, None))
    kept.pass_time(50_000)
    assert kept.state == "Empty"


def test_removal_by_an_admin_fences_and_lasts(bench: Bench) -> None:
    """Across a crash too."""
    leader, follower = bench.stable(None, None)
    held = bench.heartbeat(follower, wait_ms=3000)
    assert bench.ask(RemoveMember(member_id=follower)).error == "NONE"
    assert held.error == "UNKNOWN_MEMBER_ID"
    bench.crash()
    assert bench.heartbeat(follower).error == "UNKNOWN_MEMBER_ID"
    assert bench.heartbeat(leader).error == "REBALANCE_IN_PROGRESS"


@pytest.mark.parametrize("members", [0, 1])
def test_an_admin_can_ask_for_a_rebalance(bench: Bench, members: int) -> None:
    """On an Empty group it is a no-op, of an unknown one an error."""
    assert bench.ask(StartRebalance()).error == "GROUP_ID_NOT_FOUND"
    [member] = bench.stable(None)
    if not members:
        bench.leave((member, None))
    assert bench.ask(StartRebalance(reason="why not")).error == "NONE"
    assert bench.state == ("PreparingRebalance" if members else "Empty")


def test_the_history_is_newest_first_and_bounded(bench: Bench, member: str) -> None:
    """A hundred lines, in memory and in the store alike."""
    for _ in range(120):
        bench.rejoin([member])
        bench.settle([member])
    lines = bench.ask(ListRebalances(limit=3)).answer.rebalances
    assert [line.generation_id for line in lines] == [121, 120, 119]
    assert len(bench.group.rebalances) == 100


def test_the_story_says_what_happened_why_and_when(bench: Bench, member: str) -> None:
    """It comes with the history, newest first, and is bounded too."""
    bench.pass_time(SESSION_MS)
    history = bench.ask(ListRebalances(limit=1)).answer.history
    told = [(line.at_ms - WALL, line.generation_id, line.event) for line in reversed(history)]
    assert (bench.now, 1, f"{member} removed: its session ended") in told
    assert told[-1] == (bench.now, 1, "PreparingRebalance -> Empty")
    for _ in range(100):
        bench.stable(None)
        bench.pass_time(SESSION_MS)
    assert len(bench.group.history) == 64


def test_a_group_whose_members_all_left_while_nobody_looked_comes_back_empty(bench: Bench) -> None:
    """A crash right after the last one was removed in a join phase."""
    a, b = bench.stable(None, None)
    bench.join(a)
    bench.leave((b, None), (a, None))
    generation = bench.group.generation
    bench.crash()
    assert (bench.state, bench.group.generation) == ("Empty", generation)
