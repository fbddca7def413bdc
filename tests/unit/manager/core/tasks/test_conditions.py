from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core import scheduling
from manager.core.commands import DeleteTask, GetTask, GetTaskStatus, NewDefinition, PutTask
from protocol.etags import ALWAYS, Conditions, etag_of
from protocol.states import Target
from tests.fakes.rows import durable
from tests.unit.manager.core.bench import Ask, Bench


def put(bench: Bench, document: bytes, conditions: Conditions = ALWAYS, target: Target | None = None) -> Ask:
    definition = NewDefinition(msgspec.Raw(document), 1.0, None, {})
    return bench.ask(PutTask(task="t", definition=definition, target=target, conditions=conditions))


def seen(bench: Bench) -> str:
    task: Any = bench.ask(GetTask(task="t")).answer
    return etag_of(task.definition, task.target)


def test_of_two_who_have_seen_the_same_task_the_first_changes_it(bench: Bench) -> None:
    """The second is refused with the tag that there is now, and nothing of its change is done."""
    put(bench, b'{"a":1}')
    as_seen = Conditions(if_match=seen(bench))
    assert put(bench, b'{"a":2}', as_seen).error == "NONE"
    before = dict(bench.store)
    late = put(bench, b'{"a":3}', as_seen, Target.STOPPED)
    assert (late.error, late.answer.fields) == ("PRECONDITION_FAILED", {"etag": seen(bench)})
    assert bench.store == before


def test_a_task_that_must_not_be_there_is_created_once(bench: Bench) -> None:
    """`If-None-Match: *`; and `If-Match` does not create one, nor its group."""
    assert put(bench, b"{}", Conditions(if_match="*")).error == "PRECONDITION_FAILED"
    assert bench.store == {}
    absent = Conditions(if_none_match="*")
    assert put(bench, b"{}", absent).answer.created
    assert put(bench, b"{}", absent).error == "PRECONDITION_FAILED"


def test_what_a_condition_missed_is_told_in_words(bench: Bench) -> None:
    """There is no such task, or there is one."""
    there, absent = Conditions(if_match="*"), Conditions(if_none_match="*")
    assert put(bench, b"{}", there).answer.message == "If-Match: there is no such task"
    put(bench, b"{}")
    assert put(bench, b"{}", absent).answer.message == "If-None-Match: there is such a task already"


def test_a_change_of_the_target_is_a_change(bench: Bench) -> None:
    """How the task is doing is none."""
    put(bench, b"{}")
    before = seen(bench)
    put(bench, b"{}", target=Target.PAUSED)
    assert seen(bench) != before


def test_a_task_is_deleted_as_it_was_seen(bench: Bench) -> None:
    """What is not there is not there, whatever the condition."""
    put(bench, b"{}")
    other = Conditions(if_match=etag_of(b"[]", "RUNNING"))
    assert bench.ask(DeleteTask(task="t", conditions=other)).error == "PRECONDITION_FAILED"
    assert bench.ask(DeleteTask(task="t", conditions=Conditions(if_match=seen(bench)))).error == "NONE"
    assert bench.ask(DeleteTask(task="t", conditions=other)).error in {"UNKNOWN_TASK", "GROUP_ID_NOT_FOUND"}


def test_asking_for_what_is_already_so_changes_nothing(bench: Bench) -> None:
    """No version, no revision, nothing stored, nobody told, no rebalance."""
    put(bench, b"{}")
    stored, told = dict(bench.store), list(bench.told)
    again = put(bench, b"{}", target=Target.RUNNING).answer
    assert (again.created, again.view.definition_version) == (False, 1)
    assert (bench.store, bench.told) == (stored, told)


@pytest.mark.parametrize("target", [Target.PAUSED, Target.STOPPED])
def test_a_definition_and_a_target_come_with_one_request(target: Target) -> None:
    """Each is carried out as if it had come alone, one after the other: stored, told, and placed."""
    one, two = Bench(), Bench()
    for bench in (one, two):
        bench.herd(1, "t")
        bench.pass_time(2000)
    put(one, b'{"a":2}', target=target)
    put(two, b'{"a":2}')
    put(two, b'{"a":2}', target=target)
    assert (durable(one.group), one.told) == (durable(two.group), two.told)
    assert one.group.tasks.definitions["t"].target is target
    assert scheduling.is_rebalancing_soon(one.group) == (target is Target.STOPPED)


def test_a_definition_and_an_end_of_the_stop_come_with_one_request(bench: Bench) -> None:
    """A stopped task waits to be placed at once, under the new definition."""
    put(bench, b'{"a":1}', target=Target.STOPPED)
    put(bench, b'{"a":2}', target=Target.RUNNING)
    status = bench.ask(GetTaskStatus(task="t")).answer
    assert (status.state, bench.group.tasks.definitions["t"].definition_version) == ("UNASSIGNED", 2)
