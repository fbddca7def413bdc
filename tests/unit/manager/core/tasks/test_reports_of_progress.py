from __future__ import annotations

from typing import Any

import pytest

from manager.core.commands import DeleteTask, GetTaskStatus, PutTask, ResetTask, RestartTask, SetTarget
from manager.core.tasks import probation
from protocol.messages.ownership import TaskReport
from protocol.messages.tasks import Reached
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, definition

HERE, THERE = "/shared/g/t", "/elsewhere/g/t"


def at_work(batch_id: int = 4) -> tuple[Bench, str, str]:
    """A group of two; the first runs the task `t` and has reported its first batches."""
    bench = Bench()
    a, b = bench.herd(2, "t", "u")
    report(bench, a, 0)
    report(bench, a, batch_id)
    return bench, a, b


def report(bench: Bench, member_id: str, batch_id: int | None, place: str = HERE, **more: Any) -> None:
    """What a worker says of `t` while it runs it."""
    token = bench.group.tasks.ownership["t"].token
    assert bench.report(member_id, "t", token, batch_id=batch_id, checkpoint=place, **more) == "NONE"


def reached(bench: Bench, member_id: str) -> Reached | None:
    """What a grant of `t` tells `member_id`."""
    [granted] = bench.claim(member_id, "t").answer.granted
    found: Reached | None = granted.reached
    return found


def stored(bench: Bench) -> Reached | None:
    """What would outlast a crash."""
    return bench.group.tasks.ownership["t"].reached


def test_a_grant_says_how_far_the_task_had_come_and_where() -> None:
    """The next owner compares its checkpoint with that; of a task that is new there is nothing to say."""
    bench, a, b = at_work()
    bench.redeal([a, b], {"t": b, "u": b})
    bench.release(a, t=bench.group.tasks.ownership["t"].token)
    assert reached(bench, b) == Reached(4, HERE, a)
    assert bench.claim(b, "u").answer.granted[0].reached is None


def test_it_is_stored_with_the_first_batch_and_whenever_anything_else_is() -> None:
    """Not with every report: after a crash the task may be further than is remembered, never less far."""
    bench, a, _ = at_work()
    assert stored(bench) == Reached(0, HERE, a)
    report(bench, a, 5, state=TaskState.RESTARTING, cause="a broken pipe")
    assert stored(bench) == Reached(5, HERE, a)
    report(bench, a, 6, state=TaskState.RESTARTING, cause="a broken pipe")
    bench.crash()
    assert reached(bench, a) == Reached(5, HERE, a)


@pytest.mark.parametrize("how", ["killed", "leaves", "releases"])
def test_whoever_goes_leaves_it_behind(how: str) -> None:
    """And it outlasts the manager."""
    bench, a, _ = at_work()
    if how == "killed":
        bench.die(a)
    elif how == "leaves":
        bench.leave((a, None))
    else:
        bench.release(a, t=bench.group.tasks.ownership["t"].token)
    assert stored(bench) == Reached(4, HERE, a)
    bench.crash()
    assert stored(bench) == Reached(4, HERE, a)


def test_a_checkpoint_in_another_place_is_stored_at_once() -> None:
    """A copy that a person has brought there, and that knows of all there was."""
    bench, a, _ = at_work()
    report(bench, a, 5, THERE)
    assert stored(bench) == Reached(5, THERE, a)


def test_a_worker_that_does_not_say_where_its_checkpoint_is_changes_nothing() -> None:
    """One of before, or one whose checkpoint lags behind its batches."""
    bench, a, _ = at_work()
    token = bench.group.tasks.ownership["t"].token
    bench.report(a, "t", token, batch_id=7)
    assert reached(bench, a) == Reached(4, HERE, a)


def test_only_beginning_anew_forgets_it() -> None:
    """A reset does; a stop, a restart, another definition and the end of a bounded query do not."""
    bench, a, b = at_work()
    for command in (RestartTask(task="t"), PutTask(task="t", definition=definition(v=2))):
        assert bench.ask(command).error == "NONE"
        assert reached(bench, a) == Reached(4, HERE, a)
    report(bench, a, 5, state=TaskState.COMPLETED)
    bench.ask(RestartTask(task="t"))
    assert stored(bench) == Reached(5, HERE, a)
    bench.redeal([a, b], {"t": b, "u": b})
    assert reached(bench, b) == Reached(5, HERE, a)
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    report(bench, b, None, state=TaskState.STOPPED)
    assert stored(bench) == Reached(5, HERE, a)
    assert bench.ask(ResetTask(task="t")).error == "NONE"
    assert stored(bench) is None
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.redeal([a, b], {"t": b, "u": b})
    assert reached(bench, b) is None


def test_a_task_of_the_same_name_is_another_one() -> None:
    """What is deleted has come nowhere."""
    bench, _, _ = at_work()
    bench.ask(DeleteTask(task="t"))
    bench.create("t")
    assert stored(bench) is None
    bench.crash()
    assert stored(bench) is None


def shown(bench: Bench) -> int | None:
    """The batch of `t` that people see."""
    found: int | None = bench.ask(GetTaskStatus(task="t")).answer.batch_id
    return found


def test_a_batch_that_a_former_owner_never_reported_is_shown_from_the_checkpoint() -> None:
    """Whoever died between its last batch and its next report had finished it all the same."""
    bench, a, _ = at_work(batch_id=4)
    report(bench, a, None, committed=5)
    assert shown(bench) == 5
    report(bench, a, 6, committed=5)
    assert shown(bench) == 6


def test_a_checkpoint_that_lags_behind_its_batches_takes_none_of_them_back() -> None:
    """What an owner has reported counts more."""
    bench, a, _ = at_work(batch_id=4)
    report(bench, a, None, committed=2)
    assert shown(bench) == 4


def test_what_was_finished_before_is_no_sign_that_a_task_does_no_harm() -> None:
    """Poison that kills its workers in its first batch has an old checkpoint, too."""
    assert not probation.is_harmless(TaskReport(task="t", token=1, state=TaskState.RUNNING, committed=5))
