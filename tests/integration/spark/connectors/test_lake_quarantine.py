"""Rows put aside in Delta, Iceberg, a database or files, and the others in a lake: each is in one place."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from base64 import b64decode
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.tasks import TaskReset
from tests.integration.spark.quarantined_flights import rows_in
from worker.left_out import LeftOut
from worker.sinks.quarantine.elsewhere import QuarantinedSink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from worker.sinks.aside import Aside
    from worker.sinks.base import Lookable
    from worker.sinks.fence import Mark
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery

ONCE = {"available_now": True}
SCHEMA = "id BIGINT, carrier STRING"
EXPECT = [
    {"name": "known", "where": "id >= 0", "on_violation": "quarantine"},
    {"name": "small", "where": "id < 1000", "on_violation": "drop"},
]
TWO_OF_DELTA = pytest.param(("delta", "delta"), marks=pytest.mark.by_hand)
"""A commit to one takes twice as long as to another; CI has one of two, and two of Iceberg."""
PAIRS = [
    TWO_OF_DELTA,
    ("delta", "sql"),
    ("delta", "fenced_files"),
    ("iceberg", "iceberg"),
    ("sql", "iceberg"),
]
"""Formats of a sink, and of what is put aside beside it."""


class Places:
    """A sink and its quarantine, neither of which is there yet."""

    def __init__(self, spark: SparkSession, folder: Path, sink: str, quarantine: str) -> None:
        self.sink, self.quarantine = sink, quarantine
        self.incoming = folder / "in"
        self._spark = spark
        self._folder = folder
        self._names = {each: f"lake.shop.t{uuid.uuid4().hex}" for each in ("rows", "aside")}
        self.incoming.mkdir()

    def add(self, *lines: str) -> None:
        """One more file, which is one more batch: Spark takes them by the time they were changed."""
        count = len(list(self.incoming.iterdir()))
        file = self._folder / f"{count}.json"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (1_400_000_000 + count,) * 2)
        file.rename(self.incoming / file.name)

    def definition(self, **more: Any) -> dict[str, Any]:
        """The task; what a database refuses is no matter of a quarantine elsewhere."""
        options = {"path": str(self.incoming), "maxFilesPerTrigger": 1}
        return {
            "source": {"format": "json", "schema": SCHEMA, "options": options},
            "expect": EXPECT,
            "on_error": "fail" if self.sink == "sql" else "quarantine",
            "sink": self._place(self.sink, "rows"),
            "quarantine": self._place(self.quarantine, "aside"),
            "trigger": ONCE,
            **more,
        }

    def ids(self) -> list[int]:
        """Of the rows in the sink."""
        return sorted(row["id"] for row in self._rows(self.sink, "rows"))

    def aside(self) -> list[tuple[int, int, int, str, str]]:
        """Resets, batch, number, reason and row of all that is put aside."""
        return sorted(
            (row["resets"], row["batch_id"], row["nth"], row["reason"], _text(row["raw"]))
            for row in self._rows(self.quarantine, "aside")
        )

    def _place(self, name: str, place: str) -> dict[str, Any]:
        path = str(self._folder / place)
        options: dict[str, dict[str, Any]] = {
            "delta": {"options": {"path": path}},
            "iceberg": {"table": self._names[place]},
            "sql": {"options": {"url": f"sqlite:///{path}.db", "table": place}},
            "fenced_files": {"options": {"path": path, "format": "json"}},
        }
        return {"format": name, **options[name]}

    def _rows(self, name: str, place: str) -> list[Any]:
        path = self._folder / place
        if name == "sql":
            with closing(sqlite3.connect(f"{path}.db")) as connection:
                connection.row_factory = sqlite3.Row
                return connection.execute(f"SELECT * FROM {place}").fetchall()
        if name == "fenced_files":
            return rows_in(path)
        if name == "delta":
            return self._spark.read.format("delta").load(str(path)).collect()
        self._spark.sql(f"REFRESH TABLE {self._names[place]}")
        return self._spark.table(self._names[place]).collect()


def _text(raw: Any) -> str:
    """Files of JSON have bytes as base64."""
    if isinstance(raw, str):
        return b64decode(raw).decode()
    return bytes(raw).decode()


@pytest.fixture(params=PAIRS, ids="-".join)
def places(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Places:
    return Places(spark, tmp_path, *request.param)


@pytest.fixture(params=[TWO_OF_DELTA, ("iceberg", "iceberg")], ids="-".join)
def lakes(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Places:
    """Two of one kind."""
    return Places(spark, tmp_path, *request.param)


def good(*ids: int) -> list[str]:
    return [json.dumps({"id": n, "carrier": "UA"}) for n in ids]


def violation(resets: int, batch: int, nth: int, number: int) -> tuple[int, int, int, str, str]:
    return (resets, batch, nth, "violation", f'{{"id":{number},"carrier":"UA"}}')


class PowerCut(Exception):  # noqa: N818 - it is none of ours
    """The worker is gone."""


def fail_once_between(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The worker is gone when the quarantine has batch 1, and the sink has not; returns those it came to."""
    put = QuarantinedSink._put
    came: list[int] = []

    def interrupted(self: QuarantinedSink, aside: Sequence[Aside], batch: Lookable, mark: Mark) -> None:
        put(self, aside, batch, mark)
        came.append(mark.batch_id)
        if mark.batch_id == 1 and came.count(1) == 1:
            raise PowerCut

    monkeypatch.setattr(QuarantinedSink, "_put", interrupted)
    return came


async def done(query: SparkQuery) -> LeftOut:
    """What it has left out, when it has ended as it is to."""
    assert await query.ended() is None
    progress = query.progress()
    assert progress is not None
    return progress.totals.left_out


async def test_each_row_is_once_in_one_place(start: Any, lakes: Places, engine: SparkEngine) -> None:
    """Over batches that put nothing aside, owners, and a batch that is done again."""
    lakes.add(*good(1, -1, 2, 1000))
    lakes.add(*good(3, 4))
    lakes.add(*good(-5))
    first = await start(token=1, **lakes.definition())
    assert await done(first) == LeftOut(1, 2, {"known": 2, "small": 1})
    assert lakes.ids() == [1, 2, 3, 4]
    expected = [violation(0, 0, 0, -1), violation(0, 2, 0, -5)]
    assert lakes.aside() == expected
    checkpoint = Path(engine._settings.checkpoint(first.spec.group, first.spec.task))
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink()
    lakes.add(*good(6, -7))
    assert await done(await start(token=2, **lakes.definition())) == LeftOut(0, 1, {"known": 1})
    assert lakes.ids() == [1, 2, 3, 4, 6]
    assert lakes.aside() == [*expected, violation(0, 3, 0, -7)]


async def test_a_crash_between_the_two_steps(
    start: Any, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next owner passes over the quarantine, which has the batch, and writes the rest of it."""
    places.add(*good(1, -1))
    places.add(*good(2, -2, 3))
    came = fail_once_between(monkeypatch)
    ended = await (await start(token=1, **places.definition())).ended()
    assert "PowerCut" in ended.cause
    aside = [violation(0, 0, 0, -1), violation(0, 1, 0, -2)]
    assert (places.ids(), places.aside()) == ([1], aside)
    places.add(*good(-4))
    await done(await start(token=2, **places.definition()))
    assert came == [0, 1, 1, 2]
    assert (places.ids(), places.aside()) == ([1, 2, 3], [*aside, violation(0, 2, 0, -4)])


async def test_another_definition_between_the_two_steps_is_refused(
    start: Any, lakes: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would put other rows aside; the former one does that batch, and then the new one goes on."""
    lakes.add(*good(1))
    lakes.add(*good(2, -2, 3))
    fail_once_between(monkeypatch)
    await (await start(token=1, **lakes.definition())).ended()
    expect = [{"name": "known", "where": "id <> 3", "on_violation": "quarantine"}]
    refused = await (await start(token=2, **lakes.definition(expect=expect))).ended()
    assert "has put rows of batch 1 aside by another definition" in refused.cause
    assert (lakes.ids(), lakes.aside()) == ([1], [violation(0, 1, 0, -2)])
    await done(await start(token=3, **lakes.definition()))
    lakes.add(*good(4, 3))
    await done(await start(token=4, **lakes.definition(expect=expect)))
    assert (lakes.ids(), lakes.aside()) == ([1, 2, 3, 4], [violation(0, 1, 0, -2), violation(0, 2, 0, 3)])


async def test_a_reset_begins_anew_in_both(
    start: Any, lakes: Places, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a batch that was left between the steps; what is there stays, and is told from what comes."""
    lakes.add(*good(1, -1))
    lakes.add(*good(2, -2))
    fail_once_between(monkeypatch)
    query = await start(token=1, **lakes.definition())
    assert "PowerCut" in (await query.ended()).cause
    anew = await engine.start(replace(query.spec, token=2, reset=TaskReset(1)))
    assert await done(anew) == LeftOut(0, 2, {"known": 2})
    assert lakes.ids() == [1, 1, 2]
    assert lakes.aside() == [
        *(violation(0, n, 0, -n - 1) for n in range(2)),
        *(violation(1, n, 0, -n - 1) for n in range(2)),
    ]
    with pytest.raises(Exception, match="is fenced"):
        await start(token=1, **lakes.definition())


async def test_lines_that_cannot_be_read_are_put_aside_in_a_lake(start: Any, lakes: Places) -> None:
    """With those that violate an expectation; batches whose rows are all good or all bad are done as well."""
    lakes.add("no json", *good(1, -1))
    lakes.add("{}", '{"id": "x"}')
    lakes.add(*good(2))
    left_out = await done(await start(**lakes.definition(sql="SELECT * FROM source WHERE id IS NOT NULL")))
    assert lakes.ids() == [1, 2]
    assert lakes.aside() == [
        (0, 0, 0, "unreadable", "no json"),
        violation(0, 0, 1, -1),
        (0, 1, 0, "unreadable", '{"id": "x"}'),
    ]
    assert left_out == LeftOut(0, 3, {"known": 1, "unreadable": 2})
