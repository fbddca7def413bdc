from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import DeleteTask, GetTask, GetTaskHistory, SetTarget
from manager.core.history import TASK_LINES_KEPT
from manager.core.stored_rows import CarriedHistoryRow
from manager.core.tasks.carried_history import CAUSE_LENGTH
from manager.core.transfer_commands import AdvanceTransfer, StartTransfer
from protocol.states import Target, TaskState
from tests.unit.manager.core.tasks.transfer_pair import Pair, stored

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench


def lines(bench: Bench, task: str) -> list[Any]:
    return list(bench.ask(GetTaskHistory(task=task)).answer.history)


def carried(bench: Bench) -> list[CarriedHistoryRow]:
    return [row for row in bench.store.values() if isinstance(row, CarriedHistoryRow)]


def failed_once() -> Pair:
    """A pair whose task has failed in the first group."""
    pair = Pair()
    _, token, _ = pair.a.owner("t")
    pair.a.report(pair.giver, "t", token)
    pair.a.report(pair.giver, "t", token, TaskState.FAILED, cause="boom")
    return pair


def moved(pair: Pair) -> Pair:
    """The task has become `u` of the second group."""
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.carry()
    assert pair.steps() == (["DONE"], [])
    return pair


def test_the_history_of_a_task_goes_along_with_it() -> None:
    """States, owners and causes of before come first; each says in which group it was, under which name."""
    pair = failed_once()
    before = lines(pair.a, "t")
    moved(pair)
    pair.b.redeal([pair.getter], {"other": pair.getter, "u": pair.getter})
    pair.b.claim(pair.getter, "u")
    after = lines(pair.b, "u")
    told = [(line.at_ms, line.state, line.owner, line.token, line.cause) for line in after]
    assert told[: len(before)] == [
        (line.at_ms, line.state, line.owner, line.token, line.cause) for line in before
    ]
    assert ("FAILED", pair.giver, "boom") in [(line.state, line.owner, line.cause) for line in before]
    assert {(line.group, line.task) for line in after[: len(before)]} == {("a", "t")}
    assert (after[-1].state, after[-1].owner, after[-1].group) == ("STARTING", pair.getter, None)


def test_it_is_stored_where_the_task_is_now() -> None:
    """Whoever takes the second group over has it; the first group has nothing of it any more."""
    pair = moved(failed_once())
    before = [line for line in lines(pair.b, "u") if line.group is not None]
    pair.b.crash()
    assert [line for line in lines(pair.b, "u") if line.group is not None] == before
    assert before
    assert carried(pair.a) == []


def test_word_that_comes_twice_brings_it_once() -> None:
    """The tasks come once, and their history with them."""
    pair = failed_once()
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.tell(pair.a)
    word = stored(pair.a)
    pair.tell(pair.b, word)
    once = lines(pair.b, "u")
    pair.tell(pair.b, word)
    pair.b.crash()
    pair.tell(pair.b, word)
    assert [line for line in lines(pair.b, "u") if line.group] == [line for line in once if line.group]
    assert len(carried(pair.b)) == 1


def test_a_transfer_that_is_cancelled_leaves_none_of_it() -> None:
    """The second group forgets what has arrived; the first one remembers all it did."""
    pair = failed_once()
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    pair.cancel()
    pair.tell(pair.b)
    assert carried(pair.b) == []
    told = lines(pair.a, "t")
    assert "boom" in [line.cause for line in told]
    assert {line.group for line in told} == {None}


def test_a_later_task_of_the_name_has_a_history_of_its_own() -> None:
    """In the group that was left, and in the other one when the task is deleted there."""
    pair = moved(failed_once())
    pair.a.create("t")
    assert {line.group for line in lines(pair.a, "t")} == {None}
    pair.b.ask(DeleteTask(task="u"))
    assert carried(pair.b) == []
    pair.b.create("u")
    assert {line.group for line in lines(pair.b, "u")} == {None}


def test_what_it_did_in_every_group_goes_along() -> None:
    """Back in the first group, under a third name, it still says what happened where."""
    pair = moved(failed_once())
    pair.b.ask(StartTransfer(transfer="back", to_group="a", tasks={"u": "v"}))
    pair.b.ask(AdvanceTransfer(transfer="back", peers=()))
    pair.a.ask(AdvanceTransfer(transfer="back", peers=stored(pair.b)))
    told = lines(pair.a, "v")
    places = list(dict.fromkeys((line.group, line.task) for line in told if line.group is not None))
    assert places == [("a", "t"), ("b", "u")]
    assert [line.at_ms for line in told] == sorted(line.at_ms for line in told)


def test_what_goes_along_is_bounded() -> None:
    """As many lines as a history has, the latest ones, with causes cut short."""
    pair = Pair()
    _, token, _ = pair.a.owner("t")
    for number in range(TASK_LINES_KEPT + 10):
        pair.a.report(pair.giver, "t", token, TaskState.FAILED, cause=f"{number} " + "x" * 1000)
    moved(pair)
    [row] = carried(pair.b)
    assert len(row.lines) == TASK_LINES_KEPT
    assert row.lines[-2].cause == (f"{TASK_LINES_KEPT + 9} " + "x" * 1000)[:CAUSE_LENGTH]


@pytest.mark.parametrize("ends", ["transferred", "cancelled"])
def test_a_failed_task_is_tried_again_by_its_next_owner(ends: str) -> None:
    """As whenever one changes hands, in Kafka Connect as well; why it had failed is in its history."""
    pair = failed_once()
    pair.start()
    pair.stop_all()
    if ends == "cancelled":
        pair.cancel()
    pair.carry()
    bench, worker = (pair.b, pair.getter) if ends == "transferred" else (pair.a, pair.giver)
    bench.redeal([worker], dict.fromkeys(bench.group.tasks.definitions, worker))
    assert len(bench.claim(worker, "t").answer.granted) == 1
    assert bench.ask(GetTask(task="t")).answer.state == "STARTING"
    assert ("FAILED", "boom") in [(line.state, line.cause) for line in lines(bench, "t")]


def test_a_failed_task_that_was_stopped_before_stays_stopped() -> None:
    """That is what to do with one that is not to be tried again there."""
    pair = failed_once()
    pair.a.ask(SetTarget(task="t", target=Target.STOPPED))
    pair.start()
    pair.stop_all()
    pair.carry()
    assert pair.b.ask(GetTask(task="t")).answer.state == "STOPPED"
    assert not pair.b.group.tasks.is_runnable("t")
