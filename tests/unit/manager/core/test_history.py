from __future__ import annotations

from sys import getsizeof

import pytest

from manager.core.commands import DeleteGroup, DeleteTask
from manager.core.history import LINE_BYTES, BoundedHistory, HistoryMemory, TaskHistory
from manager.core.stored_rows import OwnershipRow
from protocol.messages.ownership import MAX_CAUSE_LENGTH
from protocol.states import TaskState
from protocol.worker_lease import REASSIGN_PERCENT, part_of
from tests.unit.manager.core.bench import SESSION_MS, Bench

MOST = 2**20


def fail(history: TaskHistory, tasks: int, times: int, letter: str) -> None:
    """Each of `tasks` fails so many times, with a long cause of its own each time."""
    for time in range(times):
        for number in range(tasks):
            cause = f"{time} {number} ".ljust(MAX_CAUSE_LENGTH, letter)
            row = OwnershipRow(group="g", task=f"t{number}", token=time, owner="w", cause=cause)
            history.note(time, None, row)


def bytes_of(history: TaskHistory, tasks: int) -> int:
    """What the causes take that it tells."""
    return sum(getsizeof(line.cause) for number in range(tasks) for line in history.of_task(f"t{number}"))


def test_a_herd_that_fails_again_and_again_takes_so_many_bytes_and_no_more() -> None:
    """Whatever letters its causes are written in; the latest lines of all its tasks are there."""
    for letter in "x\u2192\U0001f525":
        memory = HistoryMemory(MOST)
        history = TaskHistory(memory)
        fail(history, tasks=50, times=60, letter=letter)
        assert MOST * 0.9 < memory.bytes <= MOST
        assert bytes_of(history, tasks=50) < MOST
        assert all(list(history.of_task(f"t{number}"))[-1].at_ms == 59 for number in range(50))


def test_the_oldest_line_of_any_story_is_forgotten_first() -> None:
    """Nothing but its age counts."""
    memory = HistoryMemory(4 * LINE_BYTES)
    quiet, loud = BoundedHistory[int](memory, 9), BoundedHistory[int](memory, 9)
    quiet.add(1)
    loud.add(2)
    quiet.add(3)
    loud.add(4)
    loud.add(5)
    assert (list(quiet), list(loud)) == ([3], [2, 4, 5])
    loud.add(6)
    assert (list(quiet), list(loud)) == ([3], [4, 5, 6])
    loud.add(7)
    assert (list(quiet), list(loud), memory.bytes) == ([], [4, 5, 6, 7], 4 * LINE_BYTES)


def test_a_history_is_no_longer_than_it_may_be_and_gives_back_what_it_took() -> None:
    """Its lines are counted once, with their text."""
    memory = HistoryMemory(MOST)
    history = BoundedHistory[str](memory, 2)
    for line in ("a", "b", "c"):
        history.add(line, line)
    assert (list(history), list(reversed(history)), len(history)) == (["b", "c"], ["c", "b"], 2)
    assert memory.bytes == 2 * (LINE_BYTES + getsizeof("a"))
    history.clear()
    assert (list(history), memory.bytes) == ([], 0)


def test_the_newest_line_is_told_however_long_it_is() -> None:
    """There is one at least."""
    memory = HistoryMemory(LINE_BYTES)
    history = BoundedHistory[str](memory, 9)
    history.add("a", "a" * 1000)
    history.add("b", "b" * 1000)
    assert list(history) == ["b"]


def test_groups_that_go_from_memory_leave_nothing_behind(bench: Bench, worker: str) -> None:
    """Evicted, taken up anew or deleted: what was remembered of them goes as well."""
    memory = bench.coordinator._memory
    for _ in range(5):
        bench.report(worker, "t", 1, TaskState.FAILED, cause="x")
        bench.report(worker, "t", 1, TaskState.RUNNING)
    busy = memory.bytes
    bench.reload()
    restored = memory.bytes
    assert restored < busy / 2
    bench.reload(is_evicted=False)
    assert memory.bytes == restored
    bench.pass_time(SESSION_MS)
    bench.ask(DeleteGroup())
    bench.coordinator.bury("g")
    assert memory.bytes == 0


def test_a_cause_is_cut_and_a_task_s_metrics_are_bounded_where_they_come_in(
    bench: Bench, worker: str
) -> None:
    """A worker that is none of ours may report anything; what is kept of it has an end."""
    bench.report(worker, "t", 1, TaskState.FAILED, cause="\0" + "x" * 10**6)
    assert bench.group.tasks.ownership["t"].cause == "\ufffd" + "x" * (MAX_CAUSE_LENGTH - 1)
    with pytest.raises(ValueError, match=r"tasks\[0\].metrics: .* at most 65536 bytes"):
        bench.report(worker, "t", 1, metrics={"text": "x" * 65_536})
    assert bench.report(worker, "t", 1, metrics={"text": "x" * 65_000}) == "NONE"


@pytest.mark.parametrize("what", ["task", "group"])
def test_a_deleted_task_has_no_story_when_its_owner_s_lease_is_over(bench: Bench, what: str) -> None:
    """What becomes of its token then is nobody's to read; a task of that name begins with its own lines."""
    bench.create("t", sink={"format": "parquet"})
    ids = bench.worker_group(2)
    bench.deal(ids, {"t": ids[0]})
    bench.claim(ids[0], "t")
    if what == "task":
        bench.ask(DeleteTask(task="t"))
    else:
        for member in ids:
            bench.leave((member, None), stopped=False)
        bench.ask(DeleteGroup())
        bench.coordinator.bury("g")
    assert list(bench.group.tasks.history.of_task("t")) == []
    bench.pass_time(SESSION_MS // 2)
    for member in list(bench.group.members):
        bench.heartbeat(member)
    bench.pass_time(part_of(SESSION_MS, REASSIGN_PERCENT) - SESSION_MS // 2)
    assert bench.group.tasks.ownership["t"].lease is None
    assert list(bench.group.tasks.history.of_task("t")) == []
    bench.create("t")
    assert [line.state for line in bench.group.tasks.history.of_task("t")] == ["UNASSIGNED"]


@pytest.mark.parametrize("keeps_tokens", [False, True])
def test_a_group_whose_time_is_over_leaves_nothing_behind(keeps_tokens: bool) -> None:  # noqa: FBT001
    """Nor one of which the tokens are kept: nobody can ask for what became of it."""
    bench = Bench(group_retention_ms=1000)
    memory = bench.coordinator._memory
    [worker] = bench.herd(1, "t") if keeps_tokens else bench.stable(None)
    bench.leave((worker, None))
    if keeps_tokens:
        bench.ask(DeleteTask(task="t"))
    bench.pass_time(999)
    assert memory.bytes > 0
    bench.pass_time(1)
    assert bench.coordinator.names() == (("g",) if keeps_tokens else ())
    assert memory.bytes == 0
