from __future__ import annotations

from assignors.base import Member, Task
from assignors.unassigned import NO_ROOM, SUSPECTS_FULL, why_unassigned

LEFT_OUT = "the assignor left it out"
TASKS = [Task("t0"), Task("t1"), Task("t2")]


def test_a_task_left_out_is_shown_with_the_reason() -> None:
    """It tells whether the group or the assignor is to blame."""
    tasks = [*TASKS, Task("picky", labels={"gpu": "yes"})]
    assert why_unassigned({"a": ["t0"], "b": ["t2"]}, [Member("a"), Member("b")], tasks) == {
        "t1": LEFT_OUT,
        "picky": "no worker has the labels gpu=yes",
    }


def test_a_task_that_only_full_workers_may_run_waits_for_room() -> None:
    """As long as one has room, and may run it, it is the assignor's doing."""
    full, free = Member("a", max_tasks=1), Member("b", max_tasks=2)
    tasks = [*TASKS, Task("pinned", worker="a")]
    given = {"a": ["t0"], "b": ["t1"]}
    assert why_unassigned(given, [full, free], tasks) == {"t2": LEFT_OUT, "pinned": NO_ROOM}
    assert why_unassigned({**given, "b": ["t1", "t2"]}, [full, free], tasks) == {"pinned": NO_ROOM}


def test_suspects_wait_for_the_worker_that_is_kept_for_them() -> None:
    """Though others have room: they may not be beside the rest."""
    members = [Member("a", max_tasks=1), Member("b")]
    assert why_unassigned({"a": ["t0"], "b": ["t2"]}, members, TASKS, {"t0", "t1"}) == {"t1": SUSPECTS_FULL}
