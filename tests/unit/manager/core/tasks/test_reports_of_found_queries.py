"""What the manager says of queries that a worker has found: whose tokens are stale for good."""

from __future__ import annotations

import pytest

from manager.core.commands import DeleteTask, PutTask
from protocol.messages.ownership import ReportRequest
from tests.unit.manager.core.bench import Bench, definition


def found(bench: Bench, member_id: str, **tokens: int) -> dict[str, str]:
    """Of each of these queries, what the manager says of it to a member."""
    return dict(bench.ask(ReportRequest(member_id=member_id, tasks=(), found=tokens)).answer.found)


def test_the_query_of_an_owner_is_its_own(bench: Bench) -> None:
    """Whoever asks; an older one of the task is not."""
    a, b = bench.herd(2, "t", "u")
    bench.redeal([a, b], {"t": b, "u": b})
    bench.release(a, t=1)
    assert found(bench, b, t=1) == {"t": "STALE_TOKEN"}
    bench.claim(b, "t")
    assert bench.owner("t")[:2] == (b, 2)
    assert found(bench, a, t=2) == found(bench, b, t=2) == {"t": "NONE"}
    assert found(bench, a, t=1) == {"t": "STALE_TOKEN"}


@pytest.mark.parametrize("crash", [False, True])
def test_the_query_of_a_deleted_task_is_nobody_s(*, bench: Bench, crash: bool) -> None:
    """A manager that is started again knows it, too: tokens outlive their tasks."""
    _, b = bench.herd(2, "t", "u")
    bench.ask(DeleteTask(task="t"))
    if crash:
        bench.crash()
    assert found(bench, b, t=1, u=1) == {"t": "STALE_TOKEN", "u": "NONE"}


def test_a_task_that_is_created_again_has_another_query(bench: Bench, worker: str) -> None:
    """The one before stays nobody's, before the new one is granted and after it."""
    bench.ask(DeleteTask(task="t"))
    bench.ask(PutTask(task="t", definition=definition()))
    assert found(bench, worker, t=1) == {"t": "STALE_TOKEN"}


def test_what_no_manager_here_has_given_out_is_left_alone(bench: Bench, worker: str) -> None:
    """It is of another manager's group of the same name, or this one has forgotten it."""
    assert found(bench, worker, t=2, elsewhere=1) == {"t": "NONE", "elsewhere": "NONE"}


def test_whoever_does_not_ask_is_not_told(bench: Bench, worker: str) -> None:
    """The answer is as it was."""
    assert not bench.ask(ReportRequest(member_id=worker, tasks=())).answer.found
