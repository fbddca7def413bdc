"""Counting transactions."""

from __future__ import annotations

import pytest

from manager.storage.base import GoneError, StaleEpochError, StorageError
from manager.storage.tally import LONGEST_ERROR, TransactionTally


def test_transactions_are_counted_with_their_time_and_failures() -> None:
    """What the database said last is kept, not all of it."""
    moments = iter((0.0, 1.0, 10.0, 12.5))
    tally = TransactionTally(lambda: next(moments))
    with tally.counting():
        pass
    with pytest.raises(StorageError), tally.counting():
        raise StorageError("x" * 1000)
    assert (tally.transactions, tally.failed, tally.seconds) == (2, 1, 3.5)
    assert tally.last_error == "x" * LONGEST_ERROR


@pytest.mark.parametrize("refusal", [StaleEpochError((1,)), GoneError("gone"), ValueError("a bug")])
def test_what_a_rule_of_ours_refuses_is_no_failure_of_the_database(refusal: Exception) -> None:
    """A takeover is ordinary."""
    tally = TransactionTally()
    with pytest.raises(type(refusal)), tally.counting():
        raise refusal
    assert (tally.transactions, tally.failed, tally.last_error) == (1, 0, None)
