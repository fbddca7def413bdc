"""What is made of the words of a manager: the pace of tasks, and the fate of one."""

from __future__ import annotations

from typing import Any

from protocol.messages.tasks import TaskStatus
from tests.acceptance.harms.fate import Fate
from tests.acceptance.harms.pace import Pace, Paces


def told(task: str, batch_id: int | None = None, ms: int = 0, token: int = 1, **more: Any) -> TaskStatus:
    """What a manager says of a task that has finished a batch."""
    of_it: dict[str, Any] = {"state": "RUNNING", "cause": None, "metrics": {"batch_ms": ms}, **more}
    return TaskStatus(
        task=task,
        token=token,
        batch_id=batch_id,
        target="RUNNING",
        owner="anna",
        assigned_to="anna",
        generation_id=1,
        since_ms=0,
        restart_count=0,
        **of_it,
    )


def test_each_batch_counts_once_and_between_its_moments() -> None:
    """However often it is told; a batch under another token is another one, a stranger's is none."""
    paces = Paces(["a", "b"])
    paces.look(1.0, [told("a", 7, 100), told("b"), told("c", 1, 9_000)])
    paces.look(2.0, [told("a", 7, 100), told("b", 0, 300)])
    paces.look(3.0, [told("a", 7, 200, token=2), told("b", 0, 300)])
    assert paces.fewest() == 1
    assert paces.between(0.0, 10.0) == Pace(batches=3, median_ms=200, worst_ms=300, pause_s=8.0)
    assert paces.between(2.0, 3.0) == Pace(batches=1, median_ms=300, worst_ms=300, pause_s=1.0)


def test_who_finishes_nothing_pauses_all_the_time() -> None:
    """There is no batch that could be slow."""
    paces = Paces(["a"])
    assert paces.between(5.0, 9.0) == Pace(batches=0, median_ms=0.0, worst_ms=0.0, pause_s=4.0)


def test_a_fate_is_told_by_states_and_by_the_first_cause_of_each() -> None:
    """A cause that comes later belongs to its state; the last one is there as a whole."""
    fate = Fate()
    fate.look(1.0, None)
    assert (fate.state, fate.states_since(0.0)) == (None, set())
    fate.look(2.0, told("t"))
    fate.look(3.0, told("t", cause="it hangs\nhere"))
    fate.look(4.0, told("t", cause="it hangs for longer"))
    fate.look(5.0, told("t", state="FAILED", cause="it has hung"))
    assert fate.state == "FAILED"
    assert fate.cause == "it has hung"
    assert fate.lines(2.0) == [
        "    0.0 s  RUNNING     it hangs",
        "    3.0 s  FAILED      it has hung",
    ]


def test_the_states_from_a_moment_on_have_the_one_of_that_moment() -> None:
    """One that it has left before is none of them."""
    fate = Fate()
    for at, state in ((1.0, "STARTING"), (2.0, "RUNNING"), (3.0, "FAILED")):
        fate.look(at, told("t", state=state))
    assert fate.states_since(2.5) == {"RUNNING", "FAILED"}
    assert fate.states_since(3.0) == {"FAILED"}
