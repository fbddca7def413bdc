from __future__ import annotations

from typing import Any

import pytest

from manager.core.commands import GetTask, PutTask, PutTasks, RestartTask
from protocol.etags import ALWAYS, Conditions, etag_of
from protocol.messages.events import EventType
from protocol.states import Target
from tests.fakes.rows import durable
from tests.unit.manager.core.bench import Bench, definition


def put(
    task: str, target: Target | None = None, conditions: Conditions | None = None, **document: Any
) -> PutTask:
    """One of the list."""
    return PutTask(
        task=task, definition=definition(**document), target=target, conditions=conditions or Conditions()
    )


def ask(
    bench: Bench,
    *puts: PutTask,
    delete: tuple[str, ...] = (),
    validate_only: bool = False,
    conditions: Conditions = ALWAYS,
) -> Any:
    """The answer to a list."""
    return bench.ask(
        PutTasks(tasks=puts, delete=delete, validate_only=validate_only, conditions=conditions)
    ).answer


def results(answer: Any) -> list[tuple[str, str, int | None]]:
    """What became of each task, and its version."""
    return [(each.task, each.result, each.definition_version) for each in answer.tasks]


def test_a_list_creates_changes_and_forgets_in_one_turn(bench: Bench) -> None:
    """What is so already is left alone; one gathering and so one rebalance for all of it."""
    [worker] = bench.herd(1, "same", "other", "paused", "gone")
    bench.pass_time(2000)
    told = len(bench.told)
    answer = ask(
        bench,
        put("same"),
        put("other", x=1),
        put("paused", Target.PAUSED),
        put("new", Target.STOPPED),
        delete=("gone", "never-was"),
    )
    assert results(answer) == [
        ("same", "unchanged", 1),
        ("other", "changed", 2),
        ("paused", "changed", 1),
        ("new", "created", 1),
        ("gone", "deleted", None),
        ("never-was", "unchanged", None),
    ]
    assert [(event.type, event.task) for event in bench.told[told:]] == [
        (EventType.TASK_CHANGED, "other"),
        (EventType.TASK_CHANGED, "paused"),
        (EventType.TASK_CREATED, "new"),
        (EventType.TASK_DELETED, "gone"),
    ]
    generation = bench.group.generation
    bench.pass_time(100)
    bench.redeal([worker], {"same": worker, "other": worker, "paused": worker})
    bench.pass_time(5000)
    assert bench.group.generation == generation + 1
    assert sorted(bench.group.tasks.definitions) == ["new", "other", "paused", "same"]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("target", [None, *Target])
@pytest.mark.parametrize("document", [{}, {"x": 1}, {"weight": 2.0}])
def test_a_result_is_what_is_done(
    bench: Bench, document: Any, target: Target | None, *, validate_only: bool
) -> None:
    """Unchanged is what leaves no trace, changed is what leaves one; asked beforehand it is the same word."""
    bench.herd(1, "t")
    before = durable(bench.group)
    [told] = ask(bench, put("t", target, **document), validate_only=validate_only).tasks
    if validate_only:
        assert durable(bench.group) == before
        ask(bench, put("t", target, **document))
    assert told.result == ("unchanged" if durable(bench.group) == before else "changed")
    row = bench.group.tasks.definitions["t"]
    assert (told.etag, told.definition_version) == (
        etag_of(row.definition, row.target.value),
        row.definition_version,
    )


def test_its_tags_and_versions_are_those_of_single_requests() -> None:
    """So either way of changing a task can go on from the other."""
    one, many = Bench(), Bench()
    for x in (0, 1, 1):
        single = one.ask(PutTask(task="t", definition=definition(x=x))).answer.view
        [listed] = ask(many, put("t", x=x)).tasks
        assert (listed.etag, listed.definition_version) == (
            etag_of(single.definition, single.target),
            single.definition_version,
        )
    assert durable(one.group) == durable(many.group)


def test_one_condition_that_is_not_met_leaves_everything_as_it_is(bench: Bench) -> None:
    """Each that is not is told, with its place in the list."""
    bench.create("t", "u")
    before = durable(bench.group)
    failure = ask(
        bench,
        put("new"),
        put("t", conditions=Conditions(if_none_match="*")),
        put("u", conditions=Conditions(if_match='"stale"'), x=2),
        delete=("u",),
    )
    assert failure.code.name == "PRECONDITION_FAILED"
    assert [each.path for each in failure.fields["problems"]] == ["tasks[1]", "tasks[2]"]
    assert "tasks[2]: If-Match: the task has been changed since" in failure.message
    assert durable(bench.group) == before


def test_validate_only_tells_of_another_target_what_would_be(bench: Bench) -> None:
    """The tag that the task would have; none given leaves the target as it is."""
    bench.create("t")
    before = durable(bench.group)
    for target in (Target.PAUSED, Target.STOPPED, Target.RUNNING, None):
        [would_be] = ask(bench, put("t", target), validate_only=True).tasks
        etag = etag_of(definition().document, (target or Target.RUNNING).value)
        result = "changed" if target in {Target.PAUSED, Target.STOPPED} else "unchanged"
        assert (would_be.result, would_be.etag, would_be.definition_version) == (result, etag, 1)
    [would_be] = ask(bench, put("new", Target.PAUSED), validate_only=True).tasks
    assert (would_be.result, would_be.etag) == ("created", etag_of(definition().document, "PAUSED"))
    assert durable(bench.group) == before


def test_a_condition_that_is_met(bench: Bench) -> None:
    """By the tag that was read, or by there being no such task."""
    bench.create("t")
    seen = bench.ask(GetTask(task="t")).answer
    etag = etag_of(seen.definition, seen.target)
    answer = ask(
        bench,
        put("t", conditions=Conditions(if_match=etag), x=1),
        put("new", conditions=Conditions(if_none_match="*")),
    )
    assert [each.result for each in answer.tasks] == ["changed", "created"]


def test_of_two_who_have_seen_the_same_tasks_the_first_changes_them(bench: Bench) -> None:
    """The second is told the tag that there is now, and its list leaves everything as it is."""
    as_seen = Conditions(if_match=ask(bench, put("t"), put("u")).etag)
    now = ask(bench, put("t", Target.PAUSED), conditions=as_seen).etag
    before = durable(bench.group)
    failure = ask(bench, put("new"), delete=("u",), conditions=as_seen)
    assert (failure.code.name, failure.fields) == ("PRECONDITION_FAILED", {"etag": now})
    assert durable(bench.group) == before


def test_the_tag_of_a_list_is_of_what_can_be_changed(bench: Bench) -> None:
    """The same when a worker runs the tasks, after a restart, and after what changes nothing."""
    tag = ask(bench, put("t"), put("u")).etag
    bench.herd(1)
    bench.ask(RestartTask(task="t"))
    assert ask(bench, put("u")).etag == tag
    others = [ask(bench, put("v")).etag, ask(bench, delete=("t",)).etag, ask(bench, put("u", x=1)).etag]
    assert len({tag, *others}) == 4
    assert ask(bench, put("t"), put("u"), delete=("v",)).etag == tag


def test_a_group_that_must_not_be_there(bench: Bench) -> None:
    """`If-None-Match: *` makes a group, once; `If-Match` makes none."""
    refused = ask(bench, put("t"), conditions=Conditions(if_match="*"))
    assert (refused.code.name, refused.message) == ("PRECONDITION_FAILED", "If-Match: there is no such group")
    assert bench.coordinator.group("g") is None
    absent = Conditions(if_none_match="*")
    assert [each.result for each in ask(bench, put("t"), conditions=absent).tasks] == ["created"]
    refused = ask(bench, put("u"), conditions=absent)
    assert (refused.code.name, refused.message) == (
        "PRECONDITION_FAILED",
        "If-None-Match: there is such a group already",
    )
    assert [each.result for each in ask(bench, put("u"), conditions=Conditions(if_match="*")).tasks] == [
        "created"
    ]


def test_validate_only_says_what_would_be(bench: Bench) -> None:
    """The same answer, and nothing is done."""
    bench.herd(1, "same", "other", "gone")
    puts = (put("same"), put("other", Target.PAUSED, x=1), put("new"))
    before, told = durable(bench.group), len(bench.told)
    would_be = ask(bench, *puts, delete=("gone", "never-was"), validate_only=True)
    assert (durable(bench.group), len(bench.told)) == (before, told)
    assert would_be.tasks == ask(bench, *puts, delete=("gone", "never-was")).tasks


def test_a_list_makes_the_group_if_need_be(bench: Bench) -> None:
    """As a single task does; an empty list asks for nothing and makes none."""
    assert ask(bench).tasks == ()
    assert bench.coordinator.group("g") is None
    ask(bench, put("t"), put("u"))
    assert sorted(bench.group.tasks.definitions) == ["t", "u"]
    bench.crash()
    assert sorted(bench.group.tasks.definitions) == ["t", "u"]
