"""Whose the offsets of a consumer group are, by what stands beside them."""

from __future__ import annotations

import pytest

from worker.lag.group_offsets import Kept, Mark, Outcome, judge, mark_in, reasons

MINE = Mark("g", "t1", 7)
OTHER = Mark("g", "t2", 9)


def test_a_mark_is_read_as_it_was_written() -> None:
    """With whatever a group and a task may be called."""
    mark = Mark("a.b-c_d", "x.y", 1_700_000_000)
    assert mark_in(mark.text) == mark


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "sparkherd",
        "sparkherd g/t1 token 7 ",
        "sparkherd g/t1 token 7\n",
        "sparkherd g/t1 token -7",
        "my sparkherd g/t1 token 7",
        "x" * 4000,
    ],
)
def test_what_a_task_has_not_written_has_no_mark(metadata: str) -> None:
    """Kafka's own tool leaves nothing there, an application what it likes."""
    assert mark_in(metadata) is None


def test_an_owner_writes_over_its_own_and_over_those_before() -> None:
    """And where nothing is there yet."""
    for token in (6, 7):
        assert judge({("a", 0): Mark("g", "t1", token).text}, MINE) == Outcome()
    assert judge({}, MINE) == Outcome()


def test_a_former_owner_writes_nothing_any_more() -> None:
    """One partition with a newer token is enough: the others may be new ones."""
    known = {("a", 0): MINE.text, ("a", 1): Mark("g", "t1", 8).text, ("b", 0): "app"}
    assert judge(known, MINE) == Outcome(is_fenced=True)


def test_what_is_somebody_elses_keeps_its_topic_and_no_other() -> None:
    """An application's, and those of another task, whatever its token: which of two is right nobody knows."""
    known = {("a", 1): "", ("a", 0): MINE.text, ("b", 2): OTHER.text, ("b", 3): "", ("c", 0): MINE.text}
    assert judge(known, MINE) == Outcome(kept=(Kept("a", 1, None), Kept("b", 2, OTHER)))
    assert judge({("a", 0): Mark("h", "t1", 9).text}, MINE).kept == (Kept("a", 0, Mark("h", "t1", 9)),)


def test_a_person_is_told_whose_they_are_and_what_to_do() -> None:
    """In one line, with the command that gives the topic away."""
    told = reasons("told", Outcome(kept=(Kept("a", 1, None), Kept("b", 2, OTHER))))
    assert "\n" not in told
    assert "offsets of topic a, for that of partition 1 is not a task's" in told
    assert "topic b, for that of partition 2 is of task t2 of group g" in told
    assert "`kafka-consumer-groups --delete-offsets --group told --topic b`" in told
    assert "told has members" in reasons("told", Outcome(has_members=True))
    assert reasons("told", Outcome()) == reasons("told", Outcome(is_fenced=True)) == ""
