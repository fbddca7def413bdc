from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable


class NoTableError(QueryError):
    """A user's, which does not call what it inherits."""

    def __init__(self, table: str) -> None:
        self.table = table


class TooLateError(ValueError, QueryError):
    """Another one, which is made as its first base is."""


@pytest.mark.parametrize("kind", [NoTableError, TooLateError])
def test_one_of_the_user_s_own_has_a_cause(kind: Callable[[str], QueryError]) -> None:
    """An entry point that raises it fails its task, and not the worker that asks for the cause."""
    error = kind("flights")
    assert (error.fenced, error.permanent) == (False, False)
    assert str(error) == error.cause == f"{type(error).__name__}: flights"


def test_it_has_no_more_than_that() -> None:
    """Whatever else is asked for is not there."""
    assert not hasattr(NoTableError("flights"), "reason")


def test_whatever_it_is_raised_with_is_its_cause() -> None:
    """As text."""
    assert str(QueryError(KeyError("a"))) == "'a'"  # type: ignore[arg-type]  # the user's
