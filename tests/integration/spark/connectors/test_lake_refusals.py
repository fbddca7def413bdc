"""Rows that a constraint of Delta's, or a required column of Iceberg's, refuses: put aside one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.quarantine import QuarantineRequest
from tests.integration.spark.connectors.test_lake_quarantine import Places, PowerCut, done
from worker.left_out import LeftOut
from worker.sinks.base import Condition
from worker.sinks.delta.sink import DeltaSink
from worker.spark.conditions import usable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from worker.spark.engine import SparkEngine

SCHEMA = "id BIGINT, carrier STRING, delay DOUBLE"
EXPECT = [
    {"name": "known", "where": "carrier IS NOT NULL", "on_violation": "quarantine"},
    {"name": "early", "where": "delay IS NULL OR delay < 100", "on_violation": "drop"},
]
ROWS: list[tuple[int | None, str | None, float | None]] = [
    (1, "UA", 1.0),
    (2, "UA", -1.0),
    (None, "UA", 2.0),
    (4, "UA", None),
    (None, None, -5.0),
    (None, "UA", 200.0),
    (7, "UA", 7.0),
]
"""Good ones are 1 and 7; one violates an expectation and one is dropped, and neither comes to the table."""


def lines(*rows: tuple[Any, ...]) -> list[str]:
    return [json.dumps(dict(zip(("id", "carrier", "delay"), row, strict=True))) for row in rows]


class Table(Places):
    """A sink of one kind with a quarantine of the same, in a table that asks something of its rows."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str) -> None:
        super().__init__(spark, folder, kind, kind)
        self.session = spark.newSession()
        self.session.conf.set("spark.sql.runSQLOnFiles", "true")
        self.name = self._names["rows"] if kind == "iceberg" else f"delta.`{folder}/rows`"
        self.run(f"CREATE TABLE {{}} (id BIGINT NOT NULL, carrier STRING, delay DOUBLE) USING {kind}")

    def run(self, statement: str) -> None:
        self.session.sql(statement.format(self.name)).collect()

    def task(self, **more: Any) -> dict[str, Any]:
        definition = self.definition(expect=EXPECT, on_error="quarantine", **more)
        definition["source"]["schema"] = SCHEMA
        return definition

    def told(self) -> set[tuple[str, str, str, str | None]]:
        """Reason, names and error of what is put aside, with its carrier or line."""
        return {
            (row["reason"], row["name"], row["error"], bytes(row["raw"]).decode())
            for row in self._rows(self.quarantine, "aside")
        }


NULL_ID = "the sink refuses it: NOT NULL id is violated: `id` IS NOT NULL"
NEGATIVE = "the sink refuses it: positive is violated: delay >= 0"
TOLD = {
    ("refused", "positive", NEGATIVE, '{"id":2,"carrier":"UA","delay":-1.0}'),
    ("refused", "positive", NEGATIVE, '{"id":4,"carrier":"UA"}'),
    ("refused", "NOT NULL id", NULL_ID, '{"carrier":"UA","delay":2.0}'),
    ("violation", "known", "known is violated: carrier IS NOT NULL", '{"delay":-5.0}'),
    ("unreadable", "source", "source: is no line of json, or is not what source.schema says", "no json"),
}
LEFT_OUT = LeftOut(1, 5, {"refused": 3, "known": 1, "early": 1, "unreadable": 1})
"""Of `ROWS` and a line that is no JSON, in a table of Delta's with a CHECK as well."""


@pytest.mark.parametrize("sql", [None, "SELECT * FROM source"])
async def test_constraints_of_delta_put_rows_aside(
    start: Any, spark: SparkSession, tmp_path: Path, sql: str | None
) -> None:
    """By their names; what is NULL does not meet a CHECK, and what is left out before is refused by none."""
    table = Table(spark, tmp_path, "delta")
    table.run("ALTER TABLE {} ADD CONSTRAINT positive CHECK (delay >= 0)")
    table.add(*lines(*ROWS), "no json")
    left_out = await done(await start(**table.task(sql=sql)))
    assert table.ids() == [1, 7]
    assert table.told() == TOLD
    assert left_out == LEFT_OUT


async def test_required_columns_of_iceberg_put_rows_aside(
    start: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """A NULL in one of them."""
    table = Table(spark, tmp_path, "iceberg")
    table.add(*lines(*ROWS))
    left_out = await done(await start(**table.task()))
    assert table.ids() == [1, 2, 4, 7]
    assert table.told() == {
        ("refused", "NOT NULL id", NULL_ID, '{"carrier":"UA","delay":2.0}'),
        ("violation", "known", "known is violated: carrier IS NOT NULL", '{"delay":-5.0}'),
    }
    assert left_out == LeftOut(1, 2, {"refused": 1, "known": 1, "early": 1})


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
async def test_without_on_error_the_table_refuses_the_batch(
    start: Any, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """In its own words; what violates an expectation is not among its rows."""
    table = Table(spark, tmp_path, kind)
    table.add(*lines((1, "UA", 1.0), (None, "UA", 2.0)))
    ended = await (await start(**{**table.task(), "on_error": "fail"})).ended()
    assert "NULL" in ended.cause.upper()
    assert table.ids() == []


async def test_another_constraint_between_the_two_steps_is_refused(
    start: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would put other rows aside; with the former ones the batch is done."""
    table = Table(spark, tmp_path, "delta")
    table.add(*lines((1, "UA", 1.0), (2, "UA", -1.0), (None, "UA", 2.0)))
    write = DeltaSink.write

    def interrupted(self: Any, batch: Any) -> Any:
        if not self._owner.skips:
            raise PowerCut
        return write(self, batch)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaSink, "write", interrupted)
        assert "PowerCut" in (await (await start(token=1, **table.task())).ended()).cause
    table.run("ALTER TABLE {} ADD CONSTRAINT positive CHECK (delay >= 0)")
    refused = await (await start(token=2, **table.task())).ended()
    assert "or other constraints of the sink" in refused.cause
    table.run("ALTER TABLE {} DROP CONSTRAINT positive")
    await done(await start(token=3, **table.task()))
    assert table.ids() == [1, 2]
    assert len(table.aside()) == 1


async def test_what_the_table_refuses_still_stays_when_it_is_played_again(
    start: Any, engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    """Row by row, whether it is one of the result or a line; what it takes now is played."""
    table = Table(spark, tmp_path, "delta")
    table.run("ALTER TABLE {} ADD CONSTRAINT positive CHECK (delay >= 0)")
    table.add(*lines((1, "UA", 1.0), (2, "UA", -1.0), (None, "UA", 2.0)), "no json")
    query = await start(**table.task(sql="SELECT * FROM source"))
    await done(query)
    line = lines((4, "UA", -4.0))[0]
    table.session.sql(f"UPDATE delta.`{tmp_path}/aside` SET raw = '{line}' WHERE form = 'line'").collect()
    replay = QuarantineRequest(action="replay", masked=False)
    told = await engine.quarantine(query.spec, replay)
    assert (told.replayed, told.stayed) == (0, 3)
    assert sorted(note.partition(" stays: ")[2] for note in told.notes) == [
        "the sink refuses it: NOT NULL id is violated",
        "the sink refuses it: positive is violated",
        "the sink refuses it: positive is violated",
    ]
    table.run("ALTER TABLE {} DROP CONSTRAINT positive")
    told = await engine.quarantine(query.spec, replay)
    assert (told.replayed, told.stayed) == (2, 1)
    assert (table.ids(), len(table.aside())) == ([1, 2, 4], 1)


def test_conditions_that_a_plan_cannot_look_at_are_left_to_the_table(spark: SparkSession) -> None:
    """About columns that the query has not, or with another outcome each time."""
    frame = spark.range(1).selectExpr("id", "1.0 AS delay")
    known = [Condition("a", "id > 0 -- so"), Condition("b", "delay > 0")]
    others = [Condition("c", "other > 0"), Condition("d", "id > rand()"), Condition("e", "id >")]
    assert usable(frame, known, 0) == tuple(known)
    assert usable(frame, [*others[:1], *known, *others[1:]], 60) == tuple(known)
    one, two = usable(frame, [*known, Condition("c", "id < 7")], 61)
    assert (one, two.name) == (known[0], "b or c")
    assert usable(frame, [two], 0) == (two,)
    assert usable(frame, known, 62) == (Condition("a or b", "(\nid > 0 -- so\n) AND (\ndelay > 0\n)"),)
