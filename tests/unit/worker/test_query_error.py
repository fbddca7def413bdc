from __future__ import annotations

from worker.query_engine import QueryError


class NoTableError(QueryError):
    """A user's, which does not call what it inherits."""

    def __init__(self, table: str) -> None:
        self.table = table


def test_one_of_the_user_s_own_has_a_cause() -> None:
    """An entry point that raises it fails its task, and not the worker that asks for the cause."""
    error = NoTableError("flights")
    assert (error.cause, error.fenced, error.permanent) == ("NoTableError", False, False)
    assert str(error) == "NoTableError"


def test_whatever_it_is_raised_with_is_its_cause() -> None:
    """As text."""
    assert str(QueryError(KeyError("a"))) == "'a'"  # type: ignore[arg-type]  # the user's
