"""A list that still names a task which has gone to another group."""

from __future__ import annotations

import pytest

from manager.core.commands import CreateTask, DeleteGroup, DeleteTask, PutTask, PutTasks
from manager.core.transfer_commands import AdvanceTransfer, StartTransfer
from protocol.etags import Conditions
from protocol.states import Target
from tests.unit.manager.core.bench import definition
from tests.unit.manager.core.tasks.transfer_pair import Pair, stored


@pytest.fixture
def pair() -> Pair:
    """The task `t` of group `a` is `late` in group `b`."""
    pair = Pair()
    pair.start(to={"t": "late"})
    pair.stop_all()
    pair.carry()
    return pair


PUT = PutTask(task="t", definition=definition())


def test_applying_a_list_again_makes_no_second_task_of_what_has_left(pair: Pair) -> None:
    """It would write all rows once more into the same sink; whoever only looks is told as well."""
    other = PutTask(task="other", definition=definition())
    for validate_only in (True, False):
        asked = pair.a.ask(PutTasks(tasks=(other, PUT), delete=(), validate_only=validate_only))
        assert asked.error == "TASK_TRANSFERRED"
        [problem] = asked.answer.fields["problems"]
        assert problem.path == "tasks[1]"
        assert "has gone to group b as late" in problem.message
    assert pair.a.ask(PUT).error == "TASK_TRANSFERRED"
    assert not pair.a.group.tasks.definitions


def test_another_task_of_the_name_is_made_by_whoever_means_it(pair: Pair) -> None:
    """A creation cannot mean the one that has left; what is there is changed as ever, deleted or not."""
    assert pair.a.ask(CreateTask(task="t", definition=definition(), target=Target.RUNNING)).error == "NONE"
    assert pair.a.ask(PUT).error == "NONE"
    pair.a.redeal([pair.giver], {"t": pair.giver})
    pair.a.claim(pair.giver, "t")
    assert pair.a.ask(DeleteTask(task="t")).error == "NONE"
    assert pair.a.ask(PUT).error == "NONE"


def test_a_put_that_asks_that_there_be_none_is_a_creation(pair: Pair) -> None:
    """By the condition it cannot mean a task that was there."""
    put = PutTask(task="t", definition=definition(), conditions=Conditions(if_none_match="*"))
    assert pair.a.ask(put).error == "NONE"


def test_a_task_that_came_back_and_was_deleted_is_made_again(pair: Pair) -> None:
    """It has its own home again, and goes on from its checkpoint, as ever."""
    back = StartTransfer(transfer="back", to_group="a", tasks={"late": "t"})
    assert pair.b.ask(back).error == "NONE"
    for _ in range(4):
        for to, peer in ((pair.a, pair.b), (pair.b, pair.a)):
            rows = tuple(row for row in stored(peer) if row.transfer == "back")
            to.ask(AdvanceTransfer(transfer="back", peers=rows))
    assert pair.a.ask(DeleteTask(task="t")).error == "NONE"
    assert pair.a.ask(PUT).error == "NONE"


def test_it_is_known_of_a_group_that_went_and_came_again(pair: Pair) -> None:
    """Where the task went is forgotten with the group; that it did is not."""
    pair.a.leave((pair.giver, None))
    pair.a.pass_time()
    assert pair.a.ask(DeleteGroup()).error == "NONE"
    pair.a.coordinator.bury("a")
    asked = pair.a.ask(PUT)
    assert asked.error == "TASK_TRANSFERRED"
    assert "has gone to another group" in asked.answer.message
