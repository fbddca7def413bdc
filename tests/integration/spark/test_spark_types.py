from __future__ import annotations

from typing import Any

ONCE = {"available_now": True}
EVERY_TYPE = """
SELECT id,
  id = 1 AS boolean, CAST(id AS BYTE) AS byte, CAST(id AS SHORT) AS short, CAST(id AS INT) AS int,
  CAST(0.5 AS FLOAT) AS float, CAST('NaN' AS DOUBLE) AS nan, CAST(NULL AS STRING) AS nothing,
  CAST('12345678901234567890.123456789' AS DECIMAL(38, 9)) AS decimal, X'00FF' AS binary,
  DATE'2013-01-01' AS date, TIMESTAMP'2013-06-01 05:15:00.000001 Europe/Berlin' AS at,
  TIMESTAMP_NTZ'2013-06-01 05:15:00' AS ntz, 'abc' AS text
FROM source WHERE id = 1
"""


async def test_values_of_every_type_arrive(start: Any, flights: Any, database: Any) -> None:
    """From Spark's types through the driver into SQLite: exact, instants in UTC, NaN as NULL."""
    flights.add()
    query = await start(source=flights.source, sql=EVERY_TYPE, sink=database.sink("types"), trigger=ONCE)
    assert await query.ended() is None
    assert database.query("SELECT * FROM types") == [
        (
            *(1, 1, 1, 1, 1, 0.5, None, None),
            "12345678901234567890.123456789",
            b"\x00\xff",
            "2013-01-01",
            "2013-06-01 03:15:00.000001",
            "2013-06-01 05:15:00.000000",
            "abc",
        )
    ]


async def test_a_large_batch(start: Any, flights: Any, database: Any, monkeypatch: Any) -> None:
    """More rows than may pass through the driver, from several partitions: executors stage them."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 40)
    flights.add(files=4, rows=50)
    source = {**flights.source, "options": {"path": str(flights.folder)}}
    conf = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "1000"}
    query = await start(source=source, sink=database.sink(), trigger=ONCE, spark_conf=conf)
    assert await query.ended() is None
    assert database.ids() == flights.ids
    assert query.progress().batch_id == 0


async def test_a_batch_without_rows(start: Any, flights: Any, database: Any) -> None:
    """A filter that lets nothing through makes empty batches, which count all the same."""
    flights.add(files=2)
    sql = "SELECT * FROM source WHERE id < 0"
    query = await start(source=flights.source, sql=sql, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.query("SELECT batch_id, row_count FROM sparkherd_fence") == [(1, 0)]
