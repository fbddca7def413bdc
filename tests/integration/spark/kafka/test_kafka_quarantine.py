"""Keys and values of Kafka's that cannot be taken apart are put aside as they came, and where they lay."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from worker.left_out import LeftOut

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic

ONCE = {"available_now": True}
SCHEMA = "id BIGINT, name STRING"
JSON = {"format": "json", "schema": SCHEMA}
CSV = {"format": "csv", "schema": SCHEMA}
RECORD = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
AVRO = {"format": "avro", "schema": json.dumps(RECORD)}
SQL = "SELECT id, name, offset FROM source WHERE name IS NULL OR name <> 'never'"
AT = int(time.time()) * 1000 - 60_000 + 123
"""In milliseconds; not long past, for then retention takes the row."""


class Put(NamedTuple):
    """A row that was put aside."""

    name: str
    error: str
    raw: bytes
    origin: dict[str, Any]


def put_aside(database: Database) -> list[Put]:
    """All there are; each is one that could not be read."""
    rows = database.query(
        "SELECT name, error, form, raw, origin FROM sparkherd_quarantine"
        " WHERE reason = 'unreadable' ORDER BY batch_id, nth"
    )
    assert {form for _, _, form, _, _ in rows} <= {"kafka"}
    assert database.query("SELECT count(*) FROM sparkherd_quarantine") == [(len(rows),)]
    found = [Put(name, error, bytes(raw), json.loads(origin)) for name, error, _, raw, origin in rows]
    return sorted(found, key=lambda row: (row.origin["partition"], row.origin["offset"]))


@pytest.fixture(params=["collected", "staged"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a batch comes to the driver in one piece, or is staged by executors."""
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


VALUES = [
    pytest.param(JSON, b'{"id": 1, "name": "a"}', b'{"id": "x\xff"}', id="json"),
    pytest.param(CSV, b"1,a", b"one,\x00a", id="csv"),
    pytest.param(AVRO, b"\x02\x02a", b"\0\0\0\0\1\x02\x02a", id="avro"),
]
"""How values are taken apart, one that can be, and one that cannot."""


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sql", [None, SQL])
@pytest.mark.parametrize(("payload", "good", "bad"), VALUES)
async def test_a_value_is_put_aside_as_it_came(
    *,
    start: Any,
    topic: Topic,
    database: Database,
    payload: dict[str, Any],
    good: bytes,
    bad: bytes,
    sql: str | None,
) -> None:
    """Byte for byte, with where it lay, when, its key and its headers; SQL sees the others only."""
    headers = [("trace", b"\xff\0"), ("trace", b"2")]
    topic.produce([good, bad], partition=2, key=b"\xfe\0k", headers=headers, times=[AT, AT + 1])
    query = await start(
        source=topic.source(value=payload),
        sql=sql or "SELECT id, name, offset FROM source",
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.query("SELECT id, name, offset FROM flights") == [(1, "a", 0)]
    [row] = put_aside(database)
    assert (row.name, row.raw) == ("source.value", bad)
    assert row.error == f"source.value: cannot be taken apart as {payload['format']}"
    assert row.origin == {
        "topic": topic.name,
        "partition": 2,
        "offset": 1,
        "timestampType": 0,
        "timestamp": (AT + 1) * 1000,
        "key": base64.b64encode(b"\xfe\0k").decode(),
        "headers": [{"key": "trace", "value": "/wA="}, {"key": "trace", "value": "Mg=="}],
    }
    assert query._output.left_out == LeftOut(quarantined=1, reasons={"unreadable": 1})


@pytest.mark.parametrize(
    ("payload", "good", "bad"),
    [
        (JSON, b'{"id": 7, "name": "k"}', b"no json"),
        (AVRO, b"\x0e\x02k", b"\x0e"),
        ({"format": "text"}, b"k", b"\xff"),
    ],
    ids=["json", "avro", "text"],
)
async def test_a_key_is_put_aside_with_its_value(
    *, start: Any, topic: Topic, database: Database, payload: dict[str, Any], good: bytes, bad: bytes
) -> None:
    """The value is what came, the key is beside it, and a row without a key is none that is bad."""
    for key, number in ((good, 1), (bad, 2), (None, 3)):
        topic.produce([b'{"id": %d}' % number], partition=0, key=key)
    query = await start(
        source=topic.source(key=payload, value=JSON),
        sql="SELECT id, key IS NULL AS is_without FROM source",
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.query("SELECT id, is_without FROM flights ORDER BY id") == [(1, 0), (3, 1)]
    [row] = put_aside(database)
    assert (row.name, row.raw) == ("source.key", b'{"id": 2}')
    assert row.origin["key"] == base64.b64encode(bad).decode()
    assert (row.origin["partition"], row.origin["offset"]) == (0, 1)


async def test_a_row_with_a_bad_key_and_a_bad_value_is_put_aside_once(
    start: Any, topic: Topic, database: Database
) -> None:
    """By its value; what is null is no mistake, and stays null in a row that its key puts aside."""
    topic.produce([b"no json"], partition=0, key=b"\xff")
    topic.produce([None], partition=0, key=b"\xff")
    topic.produce([None], partition=0, key=b"k")
    query = await start(
        source=topic.source(key={"format": "text"}, value=JSON),
        sql=SQL,
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.query("SELECT id, name, offset FROM flights") == [(None, None, 2)]
    both, key = put_aside(database)
    assert (both.name, both.raw, both.origin.get("is_null")) == ("source.value", b"no json", None)
    assert (key.name, key.raw, key.origin.get("is_null")) == ("source.key", b"", True)
    assert query._output.left_out == LeftOut(quarantined=2, reasons={"unreadable": 2})


async def test_a_payload_whose_errors_are_null_has_none_put_aside(
    start: Any, topic: Topic, database: Database
) -> None:
    """Its rows are what Spark makes of them; of one source, the key may be put aside and the value not."""
    topic.produce([b"no json", b'{"id": 1, "name": 5}'], partition=0, key=b"k")
    topic.produce([b"no json"], partition=0, key=b"\xff")
    query = await start(
        source=topic.source(key={"format": "text"}, value={**JSON, "on_error": None}),
        sql=SQL,
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.query("SELECT id, name, offset FROM flights ORDER BY offset") == [
        (None, None, 0),
        (1, "5", 1),
    ]
    [row] = put_aside(database)
    assert (row.name, row.raw, row.origin["offset"]) == ("source.key", b"no json", 2)


async def test_too_many_of_them_fail_the_batch_with_the_places_of_three(
    start: Any, topic: Topic, database: Database
) -> None:
    """Where they lay, and nothing of what is in them; nothing of the batch is anywhere."""
    topic.produce([b"hunter2"] * 5 + [b'{"id": 1}'], partition=1, key=b"hunter2")
    query = await start(
        source=topic.source(value=JSON),
        sql=SQL,
        on_error="quarantine",
        quarantine={"max_quarantined_per_batch": 4},
        sink=database.sink(),
        trigger=ONCE,
    )
    ended = await query.ended()
    said = (
        "batch 0: 5 of 6 rows would be put aside, more than quarantine.max_quarantined_per_batch (4) allows"
    )
    assert f"{said}: source.value: cannot be taken apart as json" in ended.cause
    places = "; ".join(f"topic {topic.name}, partition 1, offset {n}" for n in range(3))
    assert f"such as {places}" in ended.cause.partition("\n")[0]
    assert "hunter2" not in ended.cause
    assert (database.ids(), put_aside(database)) == ([], [])


async def test_each_row_is_in_one_place_over_batches_and_owners(
    start: Any, topic: Topic, database: Database
) -> None:
    """With an expectation besides: what is read and is not as expected is a row of the result."""
    expect = [{"name": "named", "where": "name IS NOT NULL", "on_violation": "quarantine"}]
    definition: dict[str, Any] = {
        "source": topic.source(value=JSON, options={"maxOffsetsPerTrigger": 4}),
        "sql": SQL,
        "expect": expect,
        "on_error": "quarantine",
        "sink": database.sink(),
        "trigger": ONCE,
    }
    lines = [(b'{"id": %d, "name": "n"}', b"no %d", b'{"id": %d}')[n % 3] % n for n in range(12)]
    for token, part in enumerate((lines[:6], lines[6:]), 1):
        topic.produce(part, partition=0)
        query = await start(token=token, **definition)
        assert await query.ended() is None
    assert database.ids() == [0, 3, 6, 9]
    rows = database.query("SELECT reason, name, form, raw FROM sparkherd_quarantine")
    assert len(rows) == 8
    aside = {(reason, name, form, bytes(raw).decode()) for reason, name, form, raw in rows}
    assert aside == {
        *(("unreadable", "source.value", "kafka", f"no {n}") for n in (1, 4, 7, 10)),
        *(("violation", "named", "row", f'{{"id":{n},"offset":{n}}}') for n in (2, 5, 8, 11)),
    }
