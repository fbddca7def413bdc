"""Managers that have forgotten, put back from a copy or on another database, and sinks that have not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import ResetTask, SetTarget
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench
from worker.sinks.errors import FencedError
from worker.sinks.factory import newest_fence, open_sink
from worker.sinks.fence import Owner
from worker.standalone.token_file import TokenFile

if TYPE_CHECKING:
    from pathlib import Path

    from definition.sink import Sink
    from worker.sinks.fence import FenceRow

NOW_MS = 1_800_000_000_000
LATER_MS = 60_000


def claim(sink: Sink, token: int, resets: int = 0) -> FenceRow:
    """As the worker that was granted the task does before its query reads anything."""
    opened = open_sink(sink, Owner("g", "t", token, resets))
    assert opened is not None
    try:
        return opened.claim()
    finally:
        opened.close()


def claim_granted(sink: Sink, granted: Any) -> FenceRow:
    return claim(sink, granted.token, granted.reset.number if granted.reset else 0)


def herd(after_ms: int = 0) -> Bench:
    """A manager with an empty database, so many ms after the first one was started."""
    bench = Bench()
    bench.wall = NOW_MS + after_ms
    return bench


def moved(bench: Bench, worker: str) -> Any:
    """The task `t`, released and granted again."""
    bench.release(worker, t=bench.owner("t")[1])
    return bench.claim(worker, "t").answer.granted[0]


def put_back(bench: Bench, copy: dict[Any, Any]) -> str:
    """The manager goes on from a copy, a while later; its one worker joins again, as the owner of nothing."""
    bench.store = copy
    bench.wall += LATER_MS
    bench.crash()
    [worker] = bench.group.members
    bench.redeal([worker], {"t": worker})
    return worker


def start_over(bench: Bench, worker: str) -> Any:
    """Stop the task, reset it, and have it granted again."""
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.report(worker, "t", bench.owner("t")[1], TaskState.STOPPED)
    assert bench.ask(ResetTask(task="t")).error == "NONE"
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    return bench.claim(worker, "t").answer.granted[0]


def test_a_task_that_moved_after_the_copy_is_let_in(sink: Sink) -> None:
    """The copy does not know the last owners' tokens; the next one is higher all the same."""
    bench = herd()
    [worker] = bench.herd(1, "t")
    copy = dict(bench.store)
    for _ in range(3):
        claim_granted(sink, moved(bench, worker))
    worker = put_back(bench, copy)
    claim_granted(sink, moved(bench, worker))


def test_a_task_that_was_made_after_the_copy_is_let_in(sink: Sink) -> None:
    """Made again, it begins above what its sink has seen, and not at 1."""
    first = herd()
    [worker] = first.herd(1, "t")
    for _ in range(3):
        claim_granted(sink, moved(first, worker))
    second = herd(LATER_MS)
    [worker] = second.herd(1, "t")
    claim(sink, second.owner("t")[1])


def test_a_herd_is_let_in_after_a_run_without_a_manager_and_the_other_way_round(
    sink: Sink, tmp_path: Path
) -> None:
    """Neither knows the tokens of the other, and the run could not ask the sink."""
    bench = herd()
    [worker] = bench.herd(1, "t")
    for place in ("here", "there"):
        for _ in range(3):
            claim_granted(sink, moved(bench, worker))
        bench.wall += LATER_MS
        with TokenFile(tmp_path / place / "t.json", lambda: bench.wall) as tokens:
            claim(sink, tokens.take({"t": 0})["t"])
        bench.wall += LATER_MS


def test_a_reset_that_the_copy_does_not_know_is_not_undone(sink: Sink) -> None:
    """Who goes on from the old checkpoint is refused and told what to do; that gives a number that counts."""
    bench = herd()
    [worker] = bench.herd(1, "t")
    copy = dict(bench.store)
    known = start_over(bench, worker)
    claim_granted(sink, known)
    worker = put_back(bench, copy)
    granted = moved(bench, worker)
    with pytest.raises(FencedError, match=f"knows of its reset {known.reset.number}.*reset it again"):
        claim_granted(sink, granted)
    row = claim_granted(sink, again := start_over(bench, worker))
    assert (row.resets, row.last) == (again.reset.number, None)
    assert again.reset.number > known.reset.number


def test_a_clock_that_was_far_ahead_once_loses_nothing(sink: Sink, tmp_path: Path) -> None:
    """Its database goes on counting; whoever knows nothing of it is refused, or asks the sink."""
    bench = herd()
    [worker] = bench.herd(1, "t")
    bench.wall = 4_102_444_800_000
    ahead = moved(bench, worker)
    claim_granted(sink, ahead)
    bench.wall = NOW_MS
    claim_granted(sink, moved(bench, worker))
    other = herd(LATER_MS)
    other.herd(1, "t")
    with pytest.raises(FencedError, match=f"db restored --above {ahead.token + 1}`"):
        claim(sink, other.owner("t")[1])
    seen = newest_fence(sink, Owner("g", "t", 0))
    assert seen is not None
    with TokenFile(tmp_path / "t.json", lambda: NOW_MS) as tokens:
        claim(sink, tokens.take({"t": seen.token})["t"])
