"""How long an Empty group is kept, whoever has it meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core.commands import DeleteTask
from manager.core.stored_rows import GroupRow
from protocol.messages.base import encode_opaque
from protocol.messages.offsets import CommitOffsetsRequest, DeleteOffsetsRequest, OffsetToCommit
from tests.unit.manager.core.bench import Bench


def commit(bench: Bench) -> None:
    """An offset, from outside the group."""
    offsets = {"k": OffsetToCommit(encode_opaque(1))}
    assert bench.ask(CommitOffsetsRequest(member_id="", generation_id=-1, offsets=offsets)).error == "NONE"


def exists(bench: Bench) -> bool:
    """Whether anything but tokens is left of it."""
    return [group.name for group in bench.coordinator.living()] == ["g"]


def became_empty() -> Bench:
    """A group that is kept for 5 s, of which 1 s has gone by."""
    bench = Bench(group_retention_ms=5000)
    [member] = bench.stable(None)
    bench.leave((member, None))
    bench.pass_time(1000)
    return bench


def test_a_restored_empty_group_expires_when_it_would_have() -> None:
    """However often it is taken over: its retention goes on where it was."""
    bench = became_empty()
    for _ in range(3):
        bench.crash()
        bench.pass_time(1000)
    bench.crash()
    bench.pass_time(999)
    assert exists(bench)
    bench.pass_time(1)
    assert not exists(bench)


@pytest.mark.parametrize("forget", [DeleteOffsetsRequest(keys=("k",)), DeleteTask(task="t")])
def test_a_group_that_kept_something_is_kept_from_when_it_did_not(forget: Any) -> None:
    """After a take-over, too."""
    bench = became_empty()
    commit(bench) if isinstance(forget, DeleteOffsetsRequest) else bench.create("t")
    bench.pass_time(60_000)
    assert bench.ask(forget).error == "NONE"
    bench.pass_time(1000)
    bench.crash()
    bench.pass_time(3999)
    assert exists(bench)
    bench.pass_time(1)
    assert not exists(bench)


def test_an_empty_group_of_an_older_schema_is_kept_from_its_first_take_over() -> None:
    """Since when it is Empty was not stored then; from then on it is."""
    bench = became_empty()
    bench.store = {
        key: msgspec.structs.replace(row, idle_since_ms=0) if isinstance(row, GroupRow) else row
        for key, row in bench.store.items()
    }
    bench.crash()
    bench.pass_time(3000)
    bench.crash()
    bench.pass_time(2000)
    assert not exists(bench)


@pytest.mark.parametrize("set_by_ms", [-10_000_000, 10_000_000])
def test_a_clock_that_was_set_keeps_no_group_for_longer_than_its_retention(set_by_ms: int) -> None:
    """Back: the whole time once more at most; forward: it is over."""
    bench = became_empty()
    bench.wall += set_by_ms
    bench.crash()
    bench.pass_time(5000)
    assert not exists(bench)
