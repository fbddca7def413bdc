from __future__ import annotations

from typing import Any

import msgspec
import pytest

from definition.check import check_definition
from definition.document import Definition
from manager.console.definitions import shown
from manager.console.page import PageRequest
from manager.console.pages.add_task import add_task_page
from manager.console.pages.events import filter_of
from manager.console.pages.members import known_members
from manager.console.pages.task import TaskData, TaskPage, batch_time, figures_of, task_page
from manager.console.pages.workers import KnownWorker, workers_page
from manager.core.views.group_status import GroupStatus
from protocol.messages.alarms import TaskAlarmsResponse
from protocol.messages.base import encode_opaque
from protocol.messages.events import Event
from protocol.messages.history import FiguresPoint, TaskHistoryLine, TaskHistoryResponse
from protocol.messages.tasks import TaskResponse
from tests.unit.manager.console.answers import NOW, counts, group, member, task

ANNA = "anna-1"
NO_ALARMS = TaskAlarmsResponse(task="t", known=True, alarms=())


def life(ago_ms: int, state: str, owner: str | None = None, cause: str | None = None) -> TaskHistoryLine:
    return TaskHistoryLine(
        at_ms=NOW - ago_ms, generation_id=3, state=state, owner=owner, token=7, cause=cause
    )


def point(ago_ms: int, rows: float, batch_ms: float | None = 20.0) -> FiguresPoint:
    return FiguresPoint(at_ms=NOW - ago_ms, rows=rows, batches=2, batch_ms=batch_ms)


def view(
    *events: Event,
    points: tuple[FiguresPoint, ...] = (),
    history: tuple[TaskHistoryLine, ...] = (),
    **fields: Any,
) -> TaskPage:
    found = TaskResponse(**msgspec.structs.asdict(task("t", **fields)))
    remembered = TaskHistoryResponse(
        task="t", since_ms=None, interval_ms=10_000, points=points, history=history
    )
    return task_page(TaskData(found, remembered, NO_ALARMS, group(member(ANNA)), events), NOW)


def test_the_history_is_what_is_remembered_and_what_was_logged() -> None:
    """The newest first, names in place of ids, a failure told once though both know it."""
    failed = Event(id=9, at_ms=NOW - 300, type="task.failed", task="t", member=ANNA, cause="boom\n at X")
    created = Event(
        id=1, at_ms=NOW - 9000, type="task.created", task="t", target="RUNNING", definition_version=1
    )
    told = (
        life(8000, "UNASSIGNED"),
        life(500, "STARTING", ANNA),
        life(310, "FAILED", ANNA, "boom\n at X"),
        life(310, "UNASSIGNED", None, "boom\n at X"),
    )
    entries = view(failed, created, history=told).history
    assert [(entry.state or entry.what, entry.where, entry.headline) for entry in entries] == [
        ("UNASSIGNED", None, None),
        ("FAILED", "anna", "boom"),
        ("STARTING", "anna", None),
        ("UNASSIGNED", None, None),
        ("task.created: target RUNNING, version 1", None, None),
    ]
    assert entries[1].trace == " at X"


def test_what_happened_in_another_group_says_where() -> None:
    """A task that was transferred brings its history along, from under its former name."""
    there = msgspec.structs.replace(life(8000, "RUNNING", "carla-9"), group="flights", task="delays")
    before, after = reversed(view(history=(there, life(500, "RUNNING", ANNA))).history)
    assert before.what == "token 7, generation 3, in group flights as delays"
    assert after.what == "token 7, generation 3"


def test_a_failure_from_before_the_takeover_is_in_the_story_too() -> None:
    """The manager that knew it by heart is gone; the log still has it."""
    failed = Event(id=9, at_ms=NOW - 90_000, type="task.failed", task="t", member="gone-1", cause="boom")
    (entry,) = view(failed).history
    assert (entry.state, entry.where, entry.headline) == ("FAILED", "gone-1", "boom")


def test_figures_are_summed_up_in_five_minutes_a_line() -> None:
    """The table says what the charts show."""
    page = view(points=(point(400_000, 100), point(390_000, 200, None), point(1000, 600)))
    assert [(line.rows, line.rate, line.batches, line.slowest) for line in page.lines] == [
        ("600", "2", 2, "20 ms"),
        ("300", "1", 4, "20 ms"),
    ]


def test_the_interval_that_is_not_over_is_no_dip() -> None:
    """Its rows are divided by the time that has passed, a second at least."""
    words = [
        each.chart.partition("<desc")[2] for each in view(points=(point(40_000, 100), point(5000, 50))).charts
    ]
    assert "highest 10 rows/s 40 s ago, last 10 rows/s 5 s ago" in words[0]
    assert "last 80 rows/s" in view(points=(point(100, 80),)).charts[0].chart


def test_a_cause_is_a_headline_and_a_trace() -> None:
    """The trace can be opened; without a cause there is neither."""
    page = view(state="FAILED", cause="boom\nline 1\nline 2")
    assert (page.headline, page.trace) == ("boom", "line 1\nline 2")
    assert (view().headline, view().trace) == (None, None)


@pytest.mark.parametrize(
    ("target", "may"), [("RUNNING", "pause stop"), ("PAUSED", "resume stop"), ("STOPPED", "resume")]
)
def test_what_can_be_asked_follows_from_the_target(target: str, may: str) -> None:
    """No button that asks for what is so already."""
    page = view(target=target)
    asked = {"pause": page.may_pause, "resume": page.may_resume, "stop": page.may_stop}
    assert " ".join(name for name, is_so in asked.items() if is_so) == may


def test_metrics_may_be_anything() -> None:
    """Figures that are known are shown, whatever else a worker tells."""
    metrics = {"rows": 12, "batch_ms": "long", "load": True, "lag": {"files": 3, "x": None}, "other": [1]}
    assert [(fact.name, fact.value) for fact in figures_of(metrics)] == [
        ("Rows in the last batch", "12"),
        ("Left to read", "3 files"),
    ]
    assert list(figures_of({"lag": "far", "rows": -1})) == []


@pytest.mark.parametrize(
    ("options", "is_shown", "is_hidden"),
    [
        ({"password": "${env:PW}"}, "${env:PW}", "***"),
        ({"password": "hunter2"}, "***", "hunter2"),
        ({"password": "hunter2${env:PW}"}, "***", "hunter2"),
        ({"url": "postgresql://u:hunter2@h/d"}, "://u:***@h/d", "hunter2"),
        ({"url": "postgresql://u:${env:PW}@h/d"}, "://u:${env:PW}@h/d", "***"),
        ({"url": "postgresql://u:hunter2${env:PW}@h/d"}, "://u:***@h/d", "hunter2"),
        ({"auth": ["x", {"token": "hunter2"}]}, "***", "hunter2"),
        ({"path": "in", "n": 3, "is": True}, '"n": 3', "***"),
    ],
)
def test_references_are_shown_and_secrets_are_not(options: Any, is_shown: str, is_hidden: str) -> None:
    """A reference is a name; a password that somebody wrote down all the same is hidden."""
    text = shown(encode_opaque({"sink": {"options": options}}))
    assert is_shown in text
    assert is_hidden not in text


def test_what_the_form_begins_with_is_fine() -> None:
    """Every definition that it offers can be created as it is."""
    page = add_task_page(PageRequest("", "", {"group": "g"}))
    assert page.group == "g"
    for example in page.examples:
        assert isinstance(check_definition(example.document.encode()), Definition), example.name


def test_workers_with_trouble_come_first() -> None:
    """Silent ones, then those with failed tasks; by a part of name, group or host they can be looked for."""
    quiet = member("zoe-1", last_heartbeat_ms=NOW - 9000)
    failed = counts(task("t", "FAILED", owner="berta-1"))
    known = known_members(group(member(ANNA), member("berta-1"), quiet), failed, NOW)
    listed = [KnownWorker("flights", each) for each in known]
    other = GroupStatus(
        group="far", state="Stable", generation_id=1, workers=3, draining=0, tasks={}, troubles=()
    )
    page = workers_page(listed, [other], PageRequest("", "", {}), NOW)
    assert [line.member.name for line in page.workers.items] == ["zoe", "berta", "anna"]
    assert [(each.group, each.workers) for each in page.elsewhere] == [("far", 3)]
    found = workers_page(listed, (), PageRequest("", "", {"q": "ANN"}), NOW)
    assert [line.member.name for line in found.workers.items] == ["anna"]


def test_an_address_that_asks_for_nonsense_asks_for_nothing() -> None:
    """`before` is the id of an event or not there."""
    for before in ("", "x", "-1", "1" * 30, "\N{ARABIC-INDIC DIGIT ONE}"):
        assert filter_of(PageRequest("", "", {"before": before})).before is None
    assert filter_of(PageRequest("", "", {"before": "12", "group": " g "})).before == 12


@pytest.mark.parametrize(
    ("ms", "words"), [(0.0, "0 ms"), (80.0, "80 ms"), (1500.0, "1.5 s"), (250_000.0, "250 s")]
)
def test_batch_times_are_short_on_an_axis(ms: float, words: str) -> None:
    """Seconds from one on, and never two units."""
    assert batch_time(ms) == words
