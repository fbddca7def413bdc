"""What is written into tables of Delta and Iceberg alike, and what has to be in them then."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, NamedTuple

Row = tuple[Any, ...]

KATHMANDU: Final = timezone(timedelta(hours=5, minutes=45))
AWKWARD: Final = (
    "a=b/c%",
    "a%3Db",
    " first and last ",
    "two  spaces",
    "plus+and&",
    "quote'\"`\\",
    "{braces}[1]*?#",
    "colon:semi;",
    "line\nbreak\ttab",
    "Straße 日本 🐑",
    "..",
    "NULL",
    "x" * 100,
)
"""What has to be escaped in a path, a query or JSON, and what stands for something there."""


class Batch(NamedTuple):
    """Rows of these columns, as Spark's DDL has them."""

    columns: str
    rows: tuple[Row, ...]


class Case(NamedTuple):
    """Batches that owners of one task write one after the other, each batch by an owner of its own.

    `partition_by` of Iceberg may be others; `conf` are settings of Spark's; `left` are the rows in the
    end, all of them unless it is given.
    """

    name: str
    batches: tuple[Batch, ...]
    partition_by: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    conf: dict[str, str] = {}  # noqa: RUF012 - likewise
    left: tuple[Row, ...] | None = None


_local = datetime.fromisoformat
"""A time of no zone."""


def _types() -> Batch:
    columns = (
        "id BIGINT, flag BOOLEAN, tiny TINYINT, small SMALLINT, middle INT, single FLOAT, wide DOUBLE,"
        " price DECIMAL(10,2), exact DECIMAL(38,18), text STRING, bytes BINARY, day DATE, at TIMESTAMP,"
        " local TIMESTAMP_NTZ, numbers ARRAY<INT>, prices MAP<STRING, DECIMAL(5,1)>,"
        " nested STRUCT<name: STRING, places: ARRAY<STRUCT<at: TIMESTAMP, by: MAP<INT, BINARY>>>>"
    )
    early, late = datetime(1677, 9, 22, tzinfo=UTC), datetime(2262, 4, 11, 23, 0, 0, 999999, tzinfo=UTC)
    east = datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=KATHMANDU)
    places = [{"at": east, "by": {1: bytearray(b"\x00\xff")}}, {"at": None, "by": {}}]
    rows: tuple[Row, ...] = (
        (
            1,
            True,
            -128,
            -32768,
            -(2**31),
            -1.5,
            float("-inf"),
            Decimal("-99999999.99"),
            Decimal("-1E-18"),
            "",
            bytearray(),
            date(1, 1, 1),
            early,
            _local("0001-01-01"),
            [],
            {},
            {"name": "", "places": []},
        ),
        (
            2**63 - 1,
            False,
            127,
            32767,
            2**31 - 1,
            0.25,
            float("nan"),
            Decimal("0.10"),
            Decimal("99999999999999999999.999999999999999999"),
            "ü\x00\n🐑",
            bytearray(b"\x00\x80"),
            date(9999, 12, 31),
            late,
            _local("9999-12-31T23:59:59.999999"),
            [1, None, -1],
            {"a": Decimal("0.1"), "": None},
            {"name": "n", "places": places},
        ),
        (
            3,
            None,
            None,
            None,
            None,
            -0.0,
            -0.0,
            None,
            None,
            None,
            None,
            date(1582, 10, 4),
            east,
            _local("1969-12-31T23:59:59.999999"),
            [None],
            {"k": None},
            {"name": None, "places": []},
        ),
        (4, *([None] * 16)),
    )
    return Batch(columns, rows)


_PLACES = "id INT, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, price DECIMAL(6,2), flag BOOLEAN, big BIGINT"
_DAY: Final = date(2024, 2, 29)
_AT: Final = datetime(2026, 10, 25, 0, 30, 0, 5, tzinfo=UTC)
_LOCAL: Final = _local("2026-10-25T02:30:00.120000")
_PARTS: Final = (
    (1, _DAY, _AT, _LOCAL, Decimal("1.50"), True, 2**40),
    (2, _DAY, _AT, _LOCAL, Decimal("1.50"), True, 2**40),
    (
        3,
        date(1969, 12, 31),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        _local("1900-01-01"),
        Decimal("-0.01"),
        False,
        -1,
    ),
    (4, None, None, None, None, None, None),
)
_INSTANTS: Final = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 4, 23, 59, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
_KEYED: Final = "region STRING, id INT, v STRING"

CASES: Final = (
    Case("types", (_types(), Batch(_types().columns, _types().rows[:2]))),
    Case(
        "instants of all years",  # Spark's own way has room for 1677 to 2262 only
        (Batch("id INT, at TIMESTAMP", tuple(enumerate(_INSTANTS))),),
        conf={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
    ),
    Case(
        "awkward partition values",
        (
            Batch("id INT, part STRING", tuple(enumerate(AWKWARD))),
            Batch("id INT, part STRING", ((100, None), (101, "a=b/c%"))),
        ),
        partition_by=("part",),
    ),
    Case(
        "partitions of all types",
        (Batch(_PLACES, _PARTS),),
        partition_by=("day", "at", "local", "price", "flag", "big"),
        transforms=(
            "days(at)",
            "hours(local)",
            "truncate(10, price)",
            "flag",
            "bucket(3, big)",
            "months(day)",
        ),
    ),
    Case(
        "upsert by key",
        (
            Batch(_KEYED, (*((f"r{n % 2}", n, "old") for n in range(20)), (None, 1, "old"))),
            Batch(
                _KEYED,
                (("r1", 1, "new"), ("r1", 21, "new"), (None, 1, None), ("r0", 2, "first"), ("r0", 2, "last")),
            ),
        ),
        partition_by=("region",),
        options={"mode": "upsert", "key": ["region", "id"]},
        left=(
            *((f"r{n % 2}", n, "old") for n in range(20) if n not in {1, 2}),
            *(("r1", 1, "new"), ("r1", 21, "new"), (None, 1, None), ("r0", 2, "last")),
        ),
    ),
    Case(
        "overwrite",
        (
            Batch("k STRING, n BIGINT", (("a", 1), ("b", 1))),
            Batch("k STRING, n BIGINT", (("a", 2), ("c", 1))),
        ),
        options={"mode": "overwrite"},
        left=(("a", 2), ("c", 1)),
    ),
    Case(
        "columns are added",
        (
            Batch("id INT, part STRING", ((1, "p"), (2, "q"))),
            Batch(
                "id INT, part STRING, more STRUCT<a: INT, b: DATE>, at TIMESTAMP",
                ((3, "p", {"a": 1, "b": _DAY}, _AT), (4, "q", None, None)),
            ),
        ),
        partition_by=("part",),
        options={"merge_schema": True},
        left=(
            (1, "p", None, None),
            (2, "q", None, None),
            (3, "p", {"a": 1, "b": _DAY}, _AT),
            (4, "q", None, None),
        ),
    ),
)
