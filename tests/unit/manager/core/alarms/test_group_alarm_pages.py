"""The alarms of a group, a page at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from manager.core.alarms.group_place import GroupPlace
from manager.core.commands import ListAlarms
from manager.core.written_places import read_place
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarm_notice import Severity
from tests.unit.manager.core.alarms.looks import MINUTE, behind, rule
from tests.unit.manager.core.alarms.watched import LAG, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.alarms import Alarm


@pytest.fixture
def bench() -> Watched:
    return Watched()


def test_of_a_group_the_worst_and_newest_are_told_first(bench: Watched) -> None:
    """Of more than are asked for; those that are pending come after what fires, and all are counted."""
    critical = rule(AlarmKind.LAG_ROWS, threshold=200, severity=Severity.CRITICAL, name="critical")
    pending = rule(AlarmKind.LAG_SECONDS, threshold=1, for_ms=MINUTE * 60, name="later")
    bench.use(LAG, critical, pending)
    bench.begin("a", "b", "c")
    for task, rows in (("a", 101), ("b", 201), ("c", 101)):
        bench.runs(task, lag=behind(rows, 5000))
        bench.look()
    told = bench.ask(ListAlarms(limit=5)).answer
    assert [(each.rule, each.task, each.state) for each in told.alarms] == [
        ("critical", "b", "firing"),
        ("lag_rows", "c", "firing"),
        ("lag_rows", "b", "firing"),
        ("lag_rows", "a", "firing"),
        ("later", "c", "pending"),
    ]
    assert told.total == 7
    bench.take_over()
    assert bench.ask(ListAlarms(limit=2)).answer.alarms == told.alarms[:2]


def pages(bench: Watched, limit: int, between: Callable[[], None] = lambda: None) -> list[Alarm]:
    """All alarms of the group, as somebody asks for them who only has what is written in `next`."""
    found: list[Alarm] = []
    after: GroupPlace | None = None
    while True:
        told = bench.ask(ListAlarms(limit=limit, past=9, after=after)).answer
        found += told.alarms
        if told.next is None:
            return found
        assert len(told.alarms) == limit
        after = read_place(told.next, GroupPlace)
        assert after is not None
        between()


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 50])
def test_a_groups_alarms_are_listed_a_page_at_a_time(bench: Watched, limit: int) -> None:
    """What fires, what is pending and what is over: each once, in order, whatever came at the same time."""
    bench.use(
        LAG,
        rule(threshold=200, severity=Severity.CRITICAL, name="critical"),
        rule(AlarmKind.LAG_SECONDS, threshold=1, for_ms=MINUTE * 60, name="later"),
        rule(AlarmKind.LAG_SECONDS, threshold=2, for_ms=MINUTE * 60, name="worse", severity=Severity.INFO),
    )
    names = [f"t{number}" for number in range(6)]
    bench.begin(*names)
    for number, task in enumerate(names):
        bench.runs(task, lag=behind(150 + 100 * (number % 2), 5000))
        if number > 3:
            bench.look()
    bench.runs("t0", lag=behind(0, 5000))
    bench.look()
    whole = bench.ask(ListAlarms(limit=1000, past=9)).answer
    assert whole.total == len(whole.alarms) == 21
    assert [(each.state, each.severity) for each in whole.alarms] == [
        *[("firing", "critical")] * 3,
        *[("firing", "warning")] * 5,
        *[("pending", "warning")] * 6,
        *[("pending", "info")] * 6,
        ("resolved", "warning"),
    ]
    assert pages(bench, limit) == [*whole.alarms]


def test_what_ends_between_two_pages_moves_no_other_alarm(bench: Watched) -> None:
    """The next page begins behind the last one of the page before, which is over by then."""
    bench.use(LAG)
    names = [f"t{number}" for number in range(5)]
    bench.begin(*names)
    for task in names:
        bench.runs(task, lag=behind(101))
    bench.look()
    left = iter(names)

    def end_one() -> None:
        for task in islice(left, 1):
            bench.runs(task, lag=behind(0))
        bench.look()

    found = [each.task for each in pages(bench, 1, end_one) if each.state == "firing"]
    assert found == names
