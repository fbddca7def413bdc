"""A check says what cannot be done about rows that would be put aside."""

from __future__ import annotations

import pytest

from definition.sink import Sink
from worker.sinks.quarantine.reach import reach

SQL = Sink(format="sql", options={"url": "sqlite:////d/a.db", "table": "rows"})
FILES = Sink(format="fenced_files", options={"path": "/d/files"})
DELTA = Sink(format="delta", options={"path": "/d/delta"})
ICEBERG = Sink(format="iceberg", table="lake.db.rows")
PLUGGED = Sink(format="paper", options={"drawer": 3})


@pytest.mark.parametrize(
    ("sink", "place", "path", "says"),
    [
        (DELTA, FILES, "quarantine.format", "can be looked at, and neither be played again nor discarded"),
        (FILES, FILES, "quarantine.format", "can be looked at, and neither be played again nor discarded"),
        (FILES, DELTA, "sink.format", "and not be played again"),
        (DELTA, PLUGGED, "quarantine.format", "can neither be listed nor played again nor discarded"),
    ],
)
def test_what_cannot_be_done_is_noted(sink: Sink, place: Sink, path: str, says: str) -> None:
    """As a note, for the rows are safe there."""
    [found] = reach(sink, place)
    assert (found.path, found.is_fine) == (path, True)
    assert says in found.text


@pytest.mark.parametrize("place", [SQL, DELTA, ICEBERG])
def test_where_all_can_be_done_there_is_nothing_to_note(place: Sink) -> None:
    """Tables can be changed."""
    assert not list(reach(DELTA, place))
