"""What the page of a task says of its lag."""

from __future__ import annotations

import pytest

from manager.console.pages.lag import lag_panel, lag_sentence
from protocol.messages.lag import PartitionLag, TaskLag


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        (TaskLag(at_ms=1, trouble="no broker answers"), "It is not known how far it is behind."),
        (TaskLag(at_ms=1), "No batch of it was finished yet."),
        (TaskLag(at_ms=1, unknown=2), "Partitions without a broker that answers: 2."),
        (
            TaskLag(at_ms=1, rows=1234, lost=3),
            "1,234 rows behind; 3 rows that it has not read are no longer there.",
        ),
        (
            TaskLag(at_ms=1, rows=7, unknown=1),
            "7 rows behind; partitions without a broker that answers, which are not counted: 1.",
        ),
    ],
)
def test_the_sentence_says_what_is_known_and_what_is_not(lag: TaskLag, said: str) -> None:
    """Partitions without a leader are not counted as if they were at their end."""
    assert lag_sentence(lag) == said


def test_a_partition_that_nobody_answers_for_has_no_end() -> None:
    """The line stays, with what was read of it."""
    one = PartitionLag(topic="t", partition=0, committed=4000, end=None, behind=None)
    panel = lag_panel(TaskLag(at_ms=1, partitions=(one,), unknown=1))
    assert panel is not None
    assert (panel.lines[0].committed, panel.lines[0].end) == ("4,000", None)
