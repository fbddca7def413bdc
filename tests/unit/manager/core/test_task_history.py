from __future__ import annotations

from typing import Any

from manager.core.commands import DeleteTask, GetTaskHistory, ListMoves
from manager.core.history import CAUSE_LENGTH, TASK_LINES_KEPT
from protocol.states import TaskState
from tests.unit.manager.core.bench import WALL, Bench


def remembered(bench: Bench, task: str = "t") -> Any:
    return bench.ask(GetTaskHistory(task=task)).answer


def history(bench: Bench, task: str = "t") -> list[tuple[str, str | None, int]]:
    return [(line.state, line.owner, line.token) for line in remembered(bench, task).history]


def moves(bench: Bench) -> list[tuple[str, str | None, str | None]]:
    return [(move.task, move.left, move.joined) for move in bench.ask(ListMoves()).answer.moves]


def test_a_task_tells_where_it_ran(bench: Bench) -> None:
    """Each change of state or owner is a line of its history; a report that says nothing new is none."""
    one, two = bench.herd(2, "t")
    bench.report(one, "t", 1)
    bench.report(one, "t", 1, batch_id=7)
    bench.redeal([one, two], {"t": two})
    bench.release(one, t=1)
    bench.claim(two, "t")
    assert history(bench) == [
        ("UNASSIGNED", None, 0),
        ("STARTING", one, 1),
        ("RUNNING", one, 1),
        ("UNASSIGNED", None, 1),
        ("STARTING", two, 2),
    ]
    assert moves(bench) == [("t", None, one), ("t", one, None), ("t", None, two)]


def test_a_failure_is_told_with_its_cause(bench: Bench, worker: str) -> None:
    """The cause is in the history, cut to a length that many of can be kept."""
    bench.pass_time(500)
    bench.report(worker, "t", 1, TaskState.FAILED, cause="boom" * CAUSE_LENGTH)
    last = remembered(bench).history[-1]
    assert (last.state, last.at_ms) == ("FAILED", WALL + bench.now)
    assert last.cause == ("boom" * CAUSE_LENGTH)[:CAUSE_LENGTH]


def test_figures_come_from_accepted_reports_only(bench: Bench) -> None:
    """What a zombie reports under an old token is not the task's."""
    one, two = bench.herd(2, "t")
    bench.report(one, "t", 1)
    bench.report(one, "t", 1, batch_id=0, metrics={"total_rows": 3, "batch_ms": 4})
    bench.report(one, "t", 1, batch_id=1, metrics={"total_rows": 5, "batch_ms": 4})
    bench.redeal([one, two], {"t": two})
    bench.release(one, t=1)
    bench.claim(two, "t")
    assert bench.report(one, "t", 1, batch_id=9, metrics={"total_rows": 900}) == "STALE_TOKEN"
    assert [(point.rows, point.batches) for point in remembered(bench).points] == [(5, 1)]


def test_it_begins_anew_when_the_group_is_taken_up_and_says_since_when(bench: Bench, worker: str) -> None:
    """Nothing of it is stored: after a takeover there is no history, and `since_ms` tells why."""
    bench.report(worker, "t", 1)
    assert remembered(bench).since_ms is None
    bench.crash()
    assert (remembered(bench).since_ms, history(bench), moves(bench)) == (WALL + bench.now, [], [])


def test_what_is_kept_is_bounded(bench: Bench, worker: str) -> None:
    """A task that restarts for ever has a history of the last lines only."""
    for step in range(TASK_LINES_KEPT):
        bench.report(worker, "t", 1, TaskState.RESTARTING, cause=f"cause {step}")
    lines = remembered(bench).history
    assert len(lines) == TASK_LINES_KEPT
    assert lines[0].cause == "cause 0"


def test_a_task_of_the_same_name_has_a_history_of_its_own(bench: Bench, worker: str) -> None:
    """Deleting a task forgets its history; an unknown one has none to tell."""
    bench.report(worker, "t", 1)
    bench.ask(DeleteTask(task="t"))
    assert bench.ask(GetTaskHistory(task="t")).error == "UNKNOWN_TASK"
    bench.create("t")
    assert history(bench) == [("UNASSIGNED", None, 1)]
