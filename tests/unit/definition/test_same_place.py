"""Rows are put aside in another place than the sink's, however the two are written."""

from __future__ import annotations

from typing import Any

import pytest

from definition.same_place import same_place, table_of
from definition.sink import Sink
from tests.unit.definition.tasks import Task

KAFKA: dict[str, Any] = {
    "format": "kafka",
    "options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t"},
    "value": {"format": "json", "schema": "id BIGINT"},
}
BAD_IDS = {"name": "ids", "where": "id > 0", "on_violation": "quarantine"}
OF_TASK = Task({"source": KAFKA})
read, problems = OF_TASK.read, OF_TASK.problems


@pytest.mark.parametrize(
    ("rows", "aside"),
    [
        ("/d/rows", "/d/rows"),
        ("/d/rows", "/d/rows/"),
        ("/d/rows", "/d//x/../rows"),
        ("/d/rows", "file:/d/rows"),
        ("/d/rows", "FILE:///d/rows"),
        ("d/rows", "./d/rows"),
        ("s3a://Bucket/rows", "S3A://Bucket/rows/"),
        ("s3a://bucket/rows", "s3://bucket/rows"),
        ("/d/rows", "/d/rows/aside"),
        ("/d/rows/sink", "/d/rows"),
        ("${env:DATA}/rows", "${env:DATA}/rows/"),
        ("s3a://bucket", "s3a://bucket/"),
        ("s3a://bucket", "s3a://bucket/aside"),
        ("s3n://bucket/rows", "s3a://bucket/rows"),
        ("/", "/aside"),
        ("file:///", "/aside"),
        (".", "aside"),
        ("rows/..", "aside"),
        ("..", "aside"),
        ("../rows", "../.."),
        (" /d/rows", "/d/rows "),
        ("${env:DATA}", "${env:DATA}/aside"),
    ],
)
@pytest.mark.parametrize("forms", [("delta", "delta"), ("fenced_files", "delta"), ("delta", "fenced_files")])
def test_rows_are_not_put_aside_into_the_folder_of_the_others(
    rows: str, aside: str, forms: tuple[str, str]
) -> None:
    """However it is written: the readers of one would find the rows of the other, or tidy them away."""
    if "fenced_files" in forms and not (
        rows.strip("./ ") and aside.strip("./ ") and "://" not in rows + aside
    ):
        return  # no folders of that sink
    sink = {"format": forms[0], "options": {"path": rows}}
    place = {"format": forms[1], "options": {"path": aside}}
    [(where, why)] = problems(sink=sink, quarantine=place, expect=[BAD_IDS])
    assert (where, why.partition(",")[0]) == ("quarantine.options.path", "is the place of the sink's rows")


@pytest.mark.parametrize(
    ("rows", "aside"),
    [
        ("/d/rows", "/d/rows2"),
        ("/d/rows", "/d/aside"),
        ("s3a://one/rows", "s3a://two/rows"),
        ("s3a://one/rows", "s3a://One/rows"),
        ("${env:ROWS}/x", "${env:ASIDE}/x"),
        ("${env:ROWS}/../x", "x"),
        ("${env:ROWS}/..", "/x"),
        ("${env:ROWS}", "${env:ROWS}/../x"),
        (".", "${env:ASIDE}/x"),
        ("../rows", "aside"),
        (".", "../aside"),
        ("../rows", "../../aside"),
        ("aside", "/aside"),
    ],
)
def test_other_folders_are_other_places(rows: str, aside: str) -> None:
    """Also where one is the beginning of the other's name."""
    sink, place = ({"format": "delta", "options": {"path": at}} for at in (rows, aside))
    assert read(sink=sink, quarantine=place, expect=[BAD_IDS]).quarantine is not None


@pytest.mark.parametrize(
    ("form", "rows", "aside"),
    [
        ("delta", "rows", "Rows"),
        ("delta", "rows", "default.`rows`"),
        ("iceberg", "lake.db.rows", "lake.`db`.`rows`"),
    ],
)
def test_rows_are_not_put_aside_into_the_table_of_the_others(form: str, rows: str, aside: str) -> None:
    """However its name is written."""
    sink, place = ({"format": form, "table": name} for name in (rows, aside))
    assert problems(sink=sink, quarantine=place, expect=[BAD_IDS])[0][0] == "quarantine.table"
    other = {**place, "table": f"{aside.rstrip('`')}2{'`' * aside.endswith('`')}"}
    assert read(sink=sink, quarantine=other, expect=[BAD_IDS]).quarantine is not None


@pytest.mark.parametrize(
    ("url", "rows", "aside"),
    [
        ("sqlite:////d/a.db", "rows", "ROWS"),
        ("sqlite:////d/a.db", "rows", '"rows"'),
        ("postgresql://h/d", "rows", "public.rows"),
        ("postgresql://h/d", "herd.rows", "rows"),
        ("postgresql://h/d", "herd.rows", 'herd."rows"'),
        ("postgresql://h/d?options=-csearch_path%3Dherd", "rows", '"rows"'),
        ("postgresql://h/d?options=-csearch_path%3Dherd", "public.rows", "rows"),
    ],
)
def test_rows_are_not_put_aside_into_the_sink_s_own_table(url: str, rows: str, aside: str) -> None:
    """As the database reads its name."""
    sink = {"format": "sql", "options": {"url": url, "table": rows}}
    told = problems(sink=sink, quarantine={"table": aside}, expect=[BAD_IDS])
    assert told == [("quarantine.table", "is the table of the sink's rows")]


@pytest.mark.parametrize(
    ("url", "again"),
    [
        ("sqlite:////d/a.db", "sqlite:////d/./a.db?timeout=5"),
        ("sqlite:////d/a.db", "sqlite+aiosqlite:////d/a.db"),
        ("postgresql://u@h/d", "postgresql+psycopg://v:pw@H:5432/d?connect_timeout=3"),
        ("postgresql://u:${env:PW}@h/d", "postgresql://u:${env:OTHER}@h/d"),
        ("postgresql://u@/d?host=h&port=5432", "postgresql://u@h/d"),
        ("postgresql://h/d", "postgresql://h/e?dbname=d"),
        ("postgresql://u@h", "postgresql://v@h/u"),
        ("postgresql://h?user=u", "postgresql://v@h/u"),
        ("postgresql://u@h/${env:D}", "postgresql://v@h/${env:D}?application_name=a@b"),
        ("${env:URL}", "${env:URL}"),
    ],
)
def test_the_sink_s_own_database_is_known_by_other_urls(url: str, again: str) -> None:
    """Whoever logs in there, and with what options."""
    sink, place = ({"format": "sql", "options": {"url": each, "table": "rows"}} for each in (url, again))
    [(where, why)] = problems(sink=sink, quarantine={**place}, expect=[BAD_IDS])
    assert (where, why[:28]) == ("quarantine.format", "is the sink's own database: ")


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("sqlite:////d/a.db", "sqlite:////d/b.db"),
        ("postgresql://h/d", "postgresql://h/e"),
        ("postgresql://h/d", "postgresql://h:5433/d"),
        ("postgresql://${env:A}/d", "postgresql://${env:B}/d"),
        ("postgresql://h/d", "postgresql://h/d?dbname=e"),
        ("postgresql://h/d?service=a", "postgresql://h/d?service=b"),
        ("postgresql://h/d", "postgresql://h/d?service=b"),
        ("postgresql://h/d?hostaddr=10.0.0.1", "postgresql://h/d?hostaddr=10.0.0.2"),
        ("postgresql://h/d", "postgresql://h/d?${env:MORE}"),
        (
            "postgresql://u@${env:A}/d?application_name=a@b",
            "postgresql://u@${env:B}/d?application_name=a@b",
        ),
    ],
)
def test_other_databases_are_other_places(url: str, other: str) -> None:
    """What a secret stands for nobody knows here."""
    sink, place = ({"format": "sql", "options": {"url": each, "table": "rows"}} for each in (url, other))
    assert read(sink=sink, quarantine=place, expect=[BAD_IDS]).quarantine is not None


@pytest.mark.parametrize(
    ("url", "rows", "aside"),
    [
        ("postgresql://h/d?options=-csearch_path%3Dherd", "rows", "public.rows"),
        ("postgresql://h/d?service=herd", "rows", "public.rows"),
        ("postgresql://h/d", '"a.b".c', 'a."b.c"'),
        ("postgresql://h/d", "rows", "Rows"),
        ("sqlite:////d/a.db", '"Ä"', '"ä"'),
    ],
)
def test_other_tables_beside_the_sink_s_are_taken(url: str, rows: str, aside: str) -> None:
    """Where its schema is set by the URL nobody knows which it is; SQLite folds letters of ASCII only."""
    sink = {"format": "sql", "options": {"url": url, "table": rows}}
    assert read(sink=sink, quarantine={"table": aside}, expect=[BAD_IDS]).quarantine is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Sink(format="http", options={"path": "/rows"}), Sink(format="http", options={"path": "/rows"})),
        (Sink(format="fenced_files", options={"path": "/rows"}), Sink(format="http", options={"path": "/"})),
        (Sink(format="http", options={"path": "/"}), Sink(format="delta", options={"path": "/rows"})),
        (Sink(format="iceberg", table="lake.db.rows"), Sink(format="http", table="lake.db.rows")),
    ],
)
def test_what_plugged_formats_call_a_path_or_a_table_is_not_known(one: Sink, other: Sink) -> None:
    """It may be that of a URL, on another host."""
    assert same_place(one, other) is None


@pytest.mark.parametrize("table", ["main.rows", "x.q"])
def test_a_table_of_sqlite_beside_the_rows_has_no_schema(table: str) -> None:
    """As with sinks: main.rows would be the table of the rows, and there is no other schema."""
    sink = {"format": "sql", "options": {"url": "sqlite:////d/a.db", "table": "rows"}}
    told = problems(sink=sink, quarantine={"table": table}, expect=[BAD_IDS])
    assert told == [("quarantine.table", "has a schema before it, and SQLite has none")]


def test_a_backtick_in_a_name_is_written_twice() -> None:
    """As Spark reads it."""
    assert table_of(Sink(format="iceberg", table="lake.db.`a``b.c`")) == ("lake", "db", "a`b.c")
