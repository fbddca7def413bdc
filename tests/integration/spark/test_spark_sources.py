"""What docs/connectors.md says of files, tables and several sources, in real queries."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Database, Flights

ONCE = {"available_now": True}
SCHEMA = "id LONG, carrier STRING"


@pytest.mark.parametrize("format_name", ["csv", "json", "orc", "parquet"])
async def test_files_are_read_as_they_come(
    start: Any, database: Database, spark: SparkSession, tmp_path: Path, format_name: str
) -> None:
    """As many in a batch as the definition says."""
    frame = spark.sql("SELECT id, CAST(id AS STRING) AS carrier FROM range(6)").repartition(3)
    frame.write.format(format_name).save(str(tmp_path / "in"))
    options = {"path": str(tmp_path / "in"), "maxFilesPerTrigger": 1}
    source = {"format": format_name, "schema": SCHEMA, "options": options}
    query = await start(source=source, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == list(range(6))
    assert query._handle.last_batch() == len(list((tmp_path / "in").glob("part-*"))) - 1


async def test_files_that_were_read_are_put_aside(
    start: Any, catch_up: Any, flights: Flights, database: Database, tmp_path: Path
) -> None:
    """By Spark's own option, a batch after the one that has read them."""
    options = {
        **flights.source["options"],
        "cleanSource": "archive",
        "sourceArchiveDir": str(tmp_path / "old"),
    }
    flights.add(files=3)
    query = await start(source={**flights.source, "options": options}, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    assert database.ids() == flights.ids
    assert [file.name for file in (tmp_path / "old").rglob("*.json")] != []
    assert len(list(flights.folder.glob("*.json"))) < 3


async def test_two_sources_become_one_stream(
    start: Any, flights: Flights, database: Database, tmp_path: Path
) -> None:
    """Each a view of its name, put together by SQL."""
    flights.add(files=2)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "late.csv").write_text("100,ZZ\n")
    more = {"format": "csv", "schema": SCHEMA, "options": {"path": str(tmp_path / "more")}}
    sql = "SELECT id, carrier FROM flights UNION ALL SELECT id, carrier FROM more"
    query = await start(
        sources={"flights": flights.source, "more": more}, sql=sql, sink=database.sink(), trigger=ONCE
    )
    assert await query.ended() is None
    assert database.ids() == [*flights.ids, 100]


async def test_rows_that_found_no_partner_come_when_it_is_too_late_for_one(
    start: Any, catch_up: Any, database: Database, tmp_path: Path
) -> None:
    """An outer join of two streams gives them out when both watermarks have passed."""

    def stream(name: str, schema: str) -> dict[str, Any]:
        (tmp_path / name).mkdir()
        options = {"path": str(tmp_path / name), "maxFilesPerTrigger": 1}
        late = {"column": schema.split()[-2].strip(), "delay": "10 minutes"}
        return {"format": "csv", "schema": schema, "options": options, "watermark": late}

    def put(name: str, *lines: str) -> None:
        (tmp_path / f"{name}.new").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / f"{name}.new").rename(tmp_path / name / f"{uuid.uuid4()}.csv")

    sources = {
        "orders": stream("orders", "id LONG, placed TIMESTAMP"),
        "paid": stream("paid", "of LONG, at TIMESTAMP"),
    }
    sql = (
        "SELECT id, at FROM orders LEFT JOIN paid ON id = of"
        " AND at BETWEEN placed AND placed + INTERVAL 1 HOUR"
    )
    query = await start(sources=sources, sql=sql, sink=database.sink())
    put("orders", "1,2026-03-01 12:00:00", "2,2026-03-01 12:00:00")
    put("paid", "1,2026-03-01 12:30:00")
    await catch_up(query)
    assert database.query("SELECT id FROM flights") == [(1,)]
    put("orders", "3,2026-03-01 18:00:00")
    put("paid", "4,2026-03-01 18:00:00")
    await catch_up(query)
    assert database.query("SELECT id, at IS NULL FROM flights ORDER BY id") == [(1, 0), (2, 1)]


async def test_a_table_is_written_and_read(
    start: Any, flights: Flights, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """Made by the first batch in a catalog of Spark's, laid apart by a column."""
    flights.add(files=2)
    name = f"t{uuid.uuid4().hex}"
    sink = {
        "format": "parquet",
        "table": name,
        "partition_by": ["carrier"],
        "options": {"path": str(tmp_path / "t")},
    }
    query = await start("in", source=flights.source, sink=sink, trigger=ONCE)
    assert await query.ended() is None
    assert sorted(folder.name for folder in (tmp_path / "t").glob("carrier=*")) == [
        "carrier=AA",
        "carrier=B6",
        "carrier=UA",
    ]
    query = await start("out", source={"table": name}, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == flights.ids
    spark.sql(f"DROP TABLE {name}")
