"""By which fence a sink knows the replays out of a quarantine, and whether it has one."""

from __future__ import annotations

from typing import Any

import pytest

from definition.sink import Sink
from worker.sinks.fence import Mark, Owner
from worker.spark.quarantine.identity import fence_of
from worker.spark.quarantine.replay_names import ReplayName, replay_owner

NAME = ReplayName("f00", 5, 7)


def sql(url: str, table: str = "aside") -> Sink:
    return Sink(format="sql", options={"url": url, "table": table})


@pytest.mark.parametrize(
    ("last", "is_in"),
    [
        ("f00/5/7", True),
        ("f00/5/8", True),
        ("f00/5/6", False),
        ("f00/4/8", False),
        ("f00/6/8", False),
        (None, False),
    ],
)
def test_a_replay_is_in_the_sink_if_its_owner_has_written_as_much_there(
    last: str | None, *, is_in: bool
) -> None:
    """Another owner's batches tell nothing of it: whoever came later has settled what he found."""
    assert NAME.is_in(None if last is None else Mark("replay", 8, last)) is is_in


def test_a_name_is_read_as_it_is_written() -> None:
    """It names the fence, and so whose batches have to be looked at."""
    assert ReplayName.read(str(NAME)) == NAME
    assert replay_owner(Owner("g", "t", 5, resets=3), NAME.fence) == Owner("g", "t~f00~replay", 5, skips=True)


@pytest.mark.parametrize("text", ["", "mine", "5/7", "f00/x/7", "f00/5/", "f00/5/7/1", "/5/7"])
def test_what_people_write_there_is_no_name(text: str) -> None:
    """Nobody could say what has become of it."""
    assert ReplayName.read(text) is None


def test_a_quarantine_has_a_fence_of_its_own() -> None:
    """By all that says where it is, the schema that a URL sets included, and without passwords."""
    places: list[Any] = [
        sql("sqlite:////d/a.db"),
        sql("sqlite:////d/a.db", "other"),
        sql("postgresql://u:pw@h/d"),
        sql("postgresql://u:pw@h/d?options=-csearch_path%3Dx"),
        Sink(format="delta", options={"path": "/d/a"}),
        Sink(format="delta", table="a"),
        Sink(format="iceberg", table="a"),
        Sink(format="iceberg", table="a", options={"branch": "b"}),
    ]
    assert len({fence_of(place) for place in places}) == len(places)
    assert fence_of(sql("postgresql://u:pw@h/d")) == fence_of(sql("postgresql://u:other@h/d"))
    assert fence_of(sql("postgresql://h/d?password=a")) == fence_of(sql("postgresql://h/d?password=b"))
