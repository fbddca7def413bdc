"""How a query that a former owner left on the server is stopped, by what the server answers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.connect import UnknownException

from worker.spark.connect.session_record import stop_query

if TYPE_CHECKING:
    from collections.abc import Iterable

STILL_AT_IT = (
    "(java.util.concurrent.TimeoutException) Stream Execution thread for stream a failed to stop within 500"
    " milliseconds"
)


class Query:
    """Answers a stop with the next of `errors`, and with success when there are none left."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = iter(errors)
        self.stops = 0

    def stop(self) -> None:
        """Counted."""
        self.stops += 1
        for text in self.errors:
            raise UnknownException(text)


def stopped(query: Any) -> Query:
    """After `stop_query`."""
    stop_query(query)
    return query  # type: ignore[no-any-return]


def test_a_query_whose_batch_outlasts_a_stop_is_stopped_again() -> None:
    """The server waits for half a second each time, and says that it was not enough."""
    assert stopped(Query([STILL_AT_IT] * 3)).stops == 4


def test_one_that_never_ends_fails_the_start() -> None:
    """It would write at the same checkpoint."""
    query = Query(itertools.repeat(STILL_AT_IT))
    with pytest.raises(UnknownException, match="failed to stop within"):
        stopped(query)
    assert query.stops == 40


def test_whatever_else_the_server_says_is_told_at_once() -> None:
    """It is not a matter of time."""
    query = Query(["the query is not known"])
    with pytest.raises(UnknownException, match="not known"):
        stopped(query)
    assert query.stops == 1
