"""No column of a task has the name of one of the hidden ones that travel beside its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from definition.source import Payload, Source
from worker.query_engine import QueryError
from worker.sinks.sifting import MASK
from worker.spark.columns import HIDDEN, require_free_schemas, with_free_names
from worker.spark.quarantine.player import ID
from worker.spark.reading.unreadable import ASIDE, CORRUPT, RAW_KEY, RAW_VALUE, is_bad_column


def frame(*columns: str) -> Any:
    return SimpleNamespace(columns=list(columns))


@pytest.mark.parametrize("name", [MASK, MASK.upper(), ASIDE, CORRUPT, RAW_KEY, ID, f"{HIDDEN}whatever"])
def test_a_column_of_such_a_name_is_refused_with_its_place(name: str) -> None:
    """Spark tells no names apart by case."""
    with pytest.raises(QueryError, match=f"names a column {name}: names that begin") as refused:
        with_free_names(frame("id", name), "sql")
    assert (refused.value.path, refused.value.permanent) == ("sql", True)


def test_the_hidden_ones_have_their_names_once() -> None:
    """A second one is the task's."""
    with_free_names(frame("id", "sparkherd_x", ASIDE), "source", [ASIDE])
    with pytest.raises(QueryError):
        with_free_names(frame("id", ASIDE, ASIDE), "source", [ASIDE])


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("name", [RAW_VALUE, is_bad_column("value").upper()])
def test_a_schema_with_such_a_name_is_refused(part: str, name: str) -> None:
    """Such a column would be taken for a hidden one, and dropped."""
    payload = Payload(format="json", schema=f"id BIGINT, {name} STRING")
    given: dict[str, Any] = {part: payload}
    with pytest.raises(QueryError) as refused:
        require_free_schemas(Source(format="kafka", **given), "sources.a")
    assert refused.value.path == f"sources.a.{part}.schema"


def test_all_hidden_columns_are_told_by_their_names() -> None:
    """Whichever there are."""
    hidden = [MASK, ASIDE, CORRUPT, RAW_KEY, RAW_VALUE, ID, is_bad_column("key")]
    assert all(name.startswith(HIDDEN) for name in hidden)
