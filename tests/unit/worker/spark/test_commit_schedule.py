"""When consumer groups are told, on a clock of the test's."""

from __future__ import annotations

from worker.spark.commit_schedule import AGAIN_S, KEPT_S, CommitSchedule
from worker.waiting import Backoff

HALF = 0.5
"""No jitter."""


def schedule() -> CommitSchedule[str, str]:
    return CommitSchedule(Backoff(first_s=1.0, limit_s=4.0))


def test_only_the_latest_news_are_told_and_then_again_from_time_to_time() -> None:
    """Brokers forget a group that nobody commits to."""
    told = schedule()
    assert told.wait_s(0.0) is None
    told.put("a", "3", 0.0)
    told.put("a", "5", 1.0)
    assert told.due(1.0) == ("a", "5")
    told.told("a", "5", 2.0)
    assert told.due(3.0) is None
    assert told.wait_s(2.0) == AGAIN_S
    assert told.due(2.0 + AGAIN_S) == ("a", "5")


def test_news_that_come_while_others_are_written_are_not_lost() -> None:
    """What arrived is what was written."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.put("a", "5", 1.0)
    told.told("a", "3", 2.0)
    assert told.due(2.0) == ("a", "5")


def test_what_failed_is_tried_again_though_nothing_is_new() -> None:
    """Later and later; news do not have it tried sooner, and an answer begins anew."""
    told = schedule()
    told.put("a", "3", 0.0)
    for at, next_at in ((0.0, 1.0), (1.0, 3.0), (3.0, 7.0), (7.0, 11.0)):
        assert told.due(at) == ("a", "3")
        told.failed("a", at, HALF)
        assert told.due(at) is None
        assert told.wait_s(at) == next_at - at
    told.put("a", "9", 8.0)
    assert told.due(8.0) is None
    assert told.due(11.0) == ("a", "9")
    told.told("a", "9", 11.0)
    told.put("a", "10", 12.0)
    assert told.due(12.0) == ("a", "10")


def test_what_arrived_in_part_is_tried_again_and_newer_ones_at_once() -> None:
    """What is somebody else's keeps nobody from telling the rest; a failure begins with its own pauses."""
    told = schedule()
    told.put("a", "3", 0.0)
    for at, next_at in ((0.0, 1.0), (1.0, 3.0), (3.0, 7.0)):
        assert told.due(at) == ("a", "3")
        told.told_in_part("a", "3", at, HALF)
        assert told.wait_s(at) == next_at - at
    told.put("a", "4", 3.5)
    assert told.due(3.5) == ("a", "4")
    told.told_in_part("a", "3", 4.0, HALF)
    assert told.due(4.0) == ("a", "4")
    told.failed("a", 4.0, HALF)
    assert told.wait_s(4.0) == 1.0
    told.put("a", "5", 4.5)
    assert told.due(4.5) is None
    told.told_in_part("a", "5", 5.0, HALF)
    told.put("a", "6", 5.5)
    assert told.due(5.5) == ("a", "6")


def test_what_arrived_in_part_of_a_query_that_is_over_is_tried_for_a_while() -> None:
    """As what failed; the worker's end does not wait for it."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.told_in_part("a", "3", 0.0, HALF)
    assert not untried(told)
    told.end("a", 1.0)
    assert told.due(2.0) == ("a", "3")
    told.told("a", "3", 2.0)
    assert told.wait_s(2.0) is None


def test_one_that_fails_does_not_keep_others_waiting() -> None:
    """Who has waited longest goes first."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.put("b", "4", 0.5)
    told.failed("a", 1.0, HALF)
    assert told.due(1.0) == ("b", "4")


def test_a_batch_every_moment_sends_nobody_to_the_end_of_the_queue() -> None:
    """A hundred tasks with batches more often than there is time to tell: each is told in its turn."""
    told, names = schedule(), [f"t{number}" for number in range(100)]
    heard = []
    for step in range(200):
        for name in names:
            told.put(name, f"{step}", step)
        due = told.due(step)
        assert due is not None
        told.told(*due, step)
        heard.append(due[0])
    assert sorted(heard) == sorted(names * 2)


def test_what_was_told_already_is_no_news() -> None:
    """Batches without rows end where the one before did."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.told("a", "3", 1.0)
    told.put("a", "3", 2.0)
    assert told.due(3.0) is None
    told.put("a", "4", 4.0)
    assert told.due(4.0) == ("a", "4")


def test_coordinators_that_do_not_answer_keep_nobody_else_waiting() -> None:
    """Each try takes ten seconds, and there are more of them than time; the others' news go before."""
    told, now, sick = schedule(), 0.0, [f"sick{number}" for number in range(20)]
    for name in sick:
        told.put(name, "1", now)
    for _ in sick:
        due = told.due(now)
        assert due is not None
        now += 10.0
        told.failed(due[0], now, HALF)
    for batch in ("1", "2", "3"):
        told.put("well", batch, now)
        assert told.due(now) == ("well", batch)
        told.told("well", batch, now)
        retried = told.due(now)
        assert retried is not None
        assert retried[0] in sick
        now += 10.0
        told.failed(retried[0], now, HALF)


def test_who_failed_once_is_told_though_others_always_wait() -> None:
    """The thread never comes to an end of the others, and gives a part of its time to those that failed."""
    told, now, names = schedule(), 0.0, [f"t{number}" for number in range(10)]
    heard = dict.fromkeys((*names, "late"), 0)
    told.put("late", "1", now)
    told.failed("late", now, HALF)
    for step in range(100):
        for name in names:
            told.put(name, f"{step}", now)
        due = told.due(now)
        assert due is not None
        now += 0.5
        told.told(*due, now)
        heard[due[0]] += 1
    assert heard["late"] == 1
    assert sum(heard.values()) == 100


def test_coordinators_that_do_not_answer_take_a_part_of_the_time_only() -> None:
    """Twenty of them, ten seconds a try, and others that always wait."""
    told, now, names = schedule(), 0.0, [f"t{number}" for number in range(10)]
    told.put("well", "1", now)
    assert told.due(now) == ("well", "1")
    now = 600.0
    told.told("well", "1", now)
    for number in range(20):
        told.put(f"sick{number}", "1", now)
        told.failed(f"sick{number}", now, HALF)
    lost_s, began = 0.0, now
    for step in range(500):
        for name in names:
            told.put(name, f"{step}", now)
        due = told.due(now)
        assert due is not None
        if due[0].startswith("sick"):
            now, lost_s = now + 10.0, lost_s + 10.0
            told.failed(due[0], now, HALF)
        else:
            now += 0.5
            told.told(*due, now)
    assert 0.2 < lost_s / (now - began) < 0.3


def test_the_last_news_of_a_query_that_is_over_are_still_told_for_a_while() -> None:
    """A new query of the task has as long as it likes again."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.failed("a", 0.0, HALF)
    told.end("a", 1.0)
    assert told.due(2.0) == ("a", "3")
    assert told.due(1.0 + KEPT_S + 1.0) is None
    assert told.wait_s(0.0) is None
    told.put("b", "3", 0.0)
    told.end("b", 1.0)
    told.put("b", "4", 2.0)
    assert told.due(2 * KEPT_S) == ("b", "4")


def test_nothing_is_kept_of_a_query_that_is_over_once_it_is_told() -> None:
    """In whichever order."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.told("a", "3", 1.0)
    told.end("a", 2.0)
    told.put("b", "3", 3.0)
    told.end("b", 3.0)
    told.told("b", "3", 4.0)
    assert told.wait_s(5.0) is None


def test_the_last_news_of_a_query_that_came_during_a_write_are_told() -> None:
    """It was over before the write of the ones before was."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.put("a", "5", 1.0)
    told.end("a", 1.0)
    told.told("a", "3", 2.0)
    assert told.due(2.0) == ("a", "5")
    told.told("a", "5", 3.0)
    assert told.wait_s(3.0) is None


def test_who_is_fenced_is_told_no_more() -> None:
    """Whatever was on its way."""
    told = schedule()
    told.put("a", "3", 0.0)
    told.drop("a")
    told.told("a", "3", 1.0)
    told.told_in_part("a", "3", 1.0, HALF)
    told.failed("a", 1.0, HALF)
    told.end("a", 1.0)
    assert told.wait_s(1.0) is None


def untried(told: CommitSchedule[str, str]) -> bool:
    return told.has_untried


def test_what_was_not_tried_yet_is_known() -> None:
    """The end of a worker waits for that, and not for what brokers do not take."""
    told = schedule()
    assert not untried(told)
    told.put("a", "3", 0.0)
    assert untried(told)
    told.failed("a", 0.0, HALF)
    assert not untried(told)
    told.told("a", "3", 1.0)
    told.put("a", "4", 1.0)
    assert untried(told)
    told.told_in_part("a", "4", 1.0, HALF)
    told.put("a", "5", 1.0)
    assert untried(told)
