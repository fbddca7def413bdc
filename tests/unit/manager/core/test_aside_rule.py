"""When it is told that a task puts rows aside, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from manager.core.aside import EVERY_MS, AsideNews, AsideWatch

REASONS = ("late", "unreadable")


class Telling:
    """A watch, and what it has told of reports as they came; `now` is in milliseconds."""

    def __init__(self) -> None:
        self.watch = AsideWatch()
        self.now = 0
        self.told: list[AsideNews] = []

    def report(self, batch_id: int | None, quarantined: Any, **left_out: Any) -> None:
        """A report comes."""
        self.hear(batch_id, {"quarantined": quarantined, "left_out": left_out})

    def hear(self, batch_id: int | None, metrics: dict[str, Any] | None) -> None:
        """A report with these figures comes."""
        self.watch.take_in(batch_id, metrics, lambda: REASONS)
        self._tell()

    def wait(self, ms: int) -> None:
        """Nothing comes for so long."""
        self.now += ms
        self._tell()

    def _tell(self) -> None:
        due_at = self.watch.due_at(self.now)
        if due_at is not None and due_at <= self.now:
            self.told.append(self.watch.tell(self.now))


@pytest.fixture
def telling() -> Telling:
    """Of a task that was granted by this manager."""
    telling = Telling()
    telling.watch.begin()
    return telling


def test_the_first_rows_are_told_at_once_and_what_is_known_already_never(telling: Telling) -> None:
    """A report is sent again and again, and other batches come between."""
    telling.report(0, 0)
    assert telling.told == []
    for batch_id in (1, 1, 2):
        telling.report(batch_id, 3, late=3)
    telling.wait(EVERY_MS)
    assert telling.told == [AsideNews(3, {"late": 3})]


def test_what_comes_within_a_minute_is_told_together_at_its_end(telling: Telling) -> None:
    """Whether or not another report comes then."""
    telling.report(0, 1, late=1)
    for batch_id in range(1, 60):
        telling.wait(1000)
        telling.report(batch_id, 1 + batch_id, late=1, unreadable=batch_id)
    assert telling.told == [AsideNews(1, {"late": 1})]
    telling.wait(1000)
    assert telling.told[1:] == [AsideNews(59, {"unreadable": 59})]


def test_after_a_quiet_minute_news_are_told_at_once(telling: Telling) -> None:
    """The minute is counted from the last event, not by the clock's minutes."""
    telling.report(0, 1, late=1)
    telling.wait(EVERY_MS + 1)
    telling.report(1, 2, late=2)
    assert [news.rows for news in telling.told] == [1, 1]


def test_a_row_may_count_for_several_reasons_and_is_one_row(telling: Telling) -> None:
    """Both are told, so nobody adds up reasons."""
    telling.report(0, 2, late=2, unreadable=1)
    assert telling.told == [AsideNews(2, {"late": 2, "unreadable": 1})]


def test_only_reasons_by_which_rows_are_put_aside_are_told(telling: Telling) -> None:
    """Not those that drop rows, nor anything else that a worker may say."""
    telling.report(0, 2, late=2, dropping=9, whatever="a row")
    assert telling.told == [AsideNews(2, {"late": 2})]


def test_rows_that_are_only_dropped_are_no_news(telling: Telling) -> None:
    """They are many, and nobody can do anything with them."""
    telling.hear(0, {"dropped": 9, "quarantined": 0, "left_out": {"dropping": 9}})
    telling.wait(EVERY_MS)
    assert telling.told == []


def test_a_new_owner_counts_from_0(telling: Telling) -> None:
    """Also where it has more by its first report than the one before ever had."""
    telling.report(7, 3, late=3)
    telling.wait(EVERY_MS)
    telling.watch.begin()
    telling.report(9, 5, late=5)
    assert telling.told == [AsideNews(3, {"late": 3}), AsideNews(5, {"late": 5})]


def test_what_was_not_told_of_a_former_owner_is_told_with_the_next_one(telling: Telling) -> None:
    """A minute is a minute, whoever has the task."""
    telling.report(1, 1, late=1)
    telling.report(2, 4, late=4)
    telling.watch.begin()
    telling.report(3, 2, unreadable=2)
    telling.wait(EVERY_MS)
    assert telling.told[1:] == [AsideNews(5, {"late": 3, "unreadable": 2})]


def test_a_count_that_begins_anew_begins_at_0(telling: Telling) -> None:
    """Whatever the reason: a worker that was granted the same token again."""
    telling.report(7, 30, late=30)
    telling.wait(EVERY_MS)
    telling.report(8, 2, late=2)
    assert telling.told[1:] == [AsideNews(2, {"late": 2})]


def test_an_older_report_that_comes_late_is_no_new_beginning(telling: Telling) -> None:
    """Else what is told already would be told once more."""
    telling.report(7, 30, late=30)
    telling.wait(EVERY_MS)
    telling.report(6, 20, late=20)
    telling.report(7, 30, late=30)
    telling.wait(EVERY_MS)
    assert len(telling.told) == 1


def test_a_manager_that_takes_a_task_up_begins_with_what_it_hears_first() -> None:
    """A thousand tasks would tell again what was told by the manager before."""
    telling = Telling()
    telling.report(7, 30, late=30)
    telling.report(8, 31, late=31)
    assert telling.told == [AsideNews(1, {"late": 1})]


@pytest.mark.parametrize(
    "metrics",
    [None, {}, {"rows": 3}, {"quarantined": "3"}, {"quarantined": -1}, {"quarantined": True}],
)
def test_a_worker_that_tells_nothing_of_it_is_passed_over(
    telling: Telling, metrics: dict[str, Any] | None
) -> None:
    """One of an earlier version, or a report that was too large: what was heard before still counts."""
    telling.report(0, 2, late=2)
    telling.wait(EVERY_MS)
    telling.hear(1, metrics)
    telling.report(2, 3, late=3)
    assert [news.rows for news in telling.told] == [2, 1]


def test_counts_by_reason_may_be_anything_or_missing(telling: Telling) -> None:
    """How many rows there are is known all the same."""
    telling.hear(0, {"quarantined": 1, "left_out": [3]})
    telling.wait(EVERY_MS)
    telling.hear(1, {"quarantined": 2, "left_out": {"late": "many", "unreadable": 1}})
    assert telling.told == [AsideNews(1, {}), AsideNews(1, {"unreadable": 1})]
