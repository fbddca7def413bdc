"""Rows that a database refuses are found and put aside in the transaction that writes the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from definition.quarantine import DEFAULT_TABLE
from definition.sinks.sql import SqlOptions
from worker.left_out import LeftOut
from worker.sinks.aside import Aside, Beside, Limits
from worker.sinks.base import Field, Written
from worker.sinks.bisection import ASK_EVERY, FEW
from worker.sinks.database import LOCK_TIMEOUT_S
from worker.sinks.errors import BatchRefusedError, FencedError, SchemaError, SinkError
from worker.sinks.fence import Owner
from worker.sinks.sql import SqlSink
from worker.sinks.staging_postgres import PostgresStaging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.sinks.parts import Rows

FIELDS = (Field("id", "integer"), Field("name", "string"))
TABLE = "CREATE TABLE delays (id INTEGER PRIMARY KEY, name VARCHAR(5) CHECK (length(name) < 5))"
ROWS = "SELECT id, name FROM delays ORDER BY id"
ASIDE = f"SELECT batch_id, nth, token, reason, name, error, raw FROM {DEFAULT_TABLE} ORDER BY batch_id, nth"
BROKEN = Aside("unreadable", ("json",), "cannot be taken apart as json", "line", b"{", {"file": "a.json"})
MakeSink = Callable[..., SqlSink]


@pytest.fixture(autouse=True, params=["collected", "inline", "staged"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, batch: Any) -> str:
    """Every promise holds for rows that pass through the driver, either way, and for rows that are staged."""
    monkeypatch.setattr(batch, "collects", request.param == "collected")
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
        monkeypatch.setattr("worker.sinks.parts.CHUNK_ROWS", 3)
    return str(request.param)


@pytest.fixture
def sink(url: str, peek: Any) -> Iterator[MakeSink]:
    """A claimed sink that puts rows aside, of a table with constraints."""
    peek.run(TABLE)
    opened = []

    def make(token: int = 1, most: int = 100, *, ratio: float = 1.0, **options: Any) -> SqlSink:
        made = SqlSink(
            SqlOptions(**{"url": url, "table": "delays", **options}),
            Owner("g", "t", token),
            Beside(DEFAULT_TABLE, Limits(most, ratio), takes_refused=True),
        )
        opened.append(made)
        made.claim()
        made.prepare(FIELDS)
        return made

    yield make
    for each in opened:
        each.close()


def sifted(
    batch: Any, number: int, *partitions: Rows, aside: tuple[Aside, ...] = (), dropped: int = 0
) -> Any:
    """A batch of which rows were left out before the sink sees it."""
    made = batch(number, *partitions)
    made.aside = aside
    made.left_out = LeftOut(dropped, len(aside))
    return made


def test_rows_that_are_refused_are_no_noise_in_the_log(
    sink: MakeSink, batch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL's driver warns of its pipeline whenever it raises what the database has against one."""
    written = sink().write(batch(0, [(number, "too long") for number in range(4)]))
    assert written.left_out.quarantined == 4
    assert not [record for record in caplog.records if record.name.startswith("psycopg")]


def test_rows_that_are_refused_are_put_aside_and_the_others_written(
    sink: MakeSink, batch: Any, peek: Any
) -> None:
    """Each once: one that is too long, and one whose key is there already."""
    rows = [(number, f"n{number}") for number in range(40)]
    rows[7], rows[20] = (7, "too long"), (6, "twin")
    written = sink().write(batch(0, rows[:15], rows[15:]))
    assert [(json.loads(row[-1])["id"], row[3]) for row in peek(ASIDE)] == [(7, "refused"), (6, "refused")]
    assert peek(ROWS) == [row for row in rows if row not in {(7, "too long"), (6, "twin")}]
    assert written == Written(38, 38, left_out=LeftOut(quarantined=2, reasons={"refused": 2}))
    assert peek("SELECT row_count FROM sparkherd_fence") == [(38,)]


def test_a_batch_without_a_bad_row_is_written_as_ever(sink: MakeSink, batch: Any, peek: Any) -> None:
    """Nothing is put aside."""
    assert sink().write(batch(0, [(1, "a")], [(2, "b")])) == Written(2, 2)
    assert peek(ROWS) == [(1, "a"), (2, "b")]
    assert peek(ASIDE) == []


def test_what_spark_has_left_out_moves_in_the_same_transaction(sink: MakeSink, batch: Any, peek: Any) -> None:
    """With whose batch it was, and in which order."""
    sink(4).write(sifted(batch, 0, [(1, "a"), (2, "too long")], aside=(BROKEN,)))
    first, second = peek(ASIDE)
    assert first[:6] == (0, 0, 4, "unreadable", "json", "cannot be taken apart as json")
    assert (bytes(first[6]), second[:4]) == (b"{", (0, 1, 4, "refused"))
    assert peek(f"SELECT group_id, task, resets, form, origin FROM {DEFAULT_TABLE} WHERE nth = 0") == [
        ("g", "t", 0, "line", '{"file": "a.json"}')
    ]


def test_a_batch_seen_before_puts_nothing_aside_again(sink: MakeSink, batch: Any, peek: Any) -> None:
    """Whatever would be refused now."""
    rows = [(1, "a"), (2, "too long")]
    sink(1).write(sifted(batch, 0, rows, aside=(BROKEN,)))
    assert sink(2).write(sifted(batch, 0, rows, aside=(BROKEN,))).duplicate
    assert (len(peek(ROWS)), len(peek(ASIDE))) == (1, 2)


def test_a_zombie_puts_nothing_aside(sink: MakeSink, batch: Any, peek: Any) -> None:
    """The fence is before both."""
    zombie = sink(1)
    sink(2)
    with pytest.raises(FencedError):
        zombie.write(sifted(batch, 0, [(1, "a")], aside=(BROKEN,)))
    assert (peek(ROWS), peek(ASIDE)) == ([], [])


def test_beyond_the_bound_the_whole_batch_fails(sink: MakeSink, batch: Any, peek: Any) -> None:
    """With the error and three rows; nothing of it is written or put aside, before the bound is raised."""
    rows = [(number, "too long") for number in range(30)] + [(100, "a")]
    with pytest.raises(SinkError, match=r"max_quarantined_per_batch \(5\).*such as \{.*\}; \{.*\}; \{.*\}"):
        sink(1, most=5).write(batch(0, rows))
    assert (peek(ROWS), peek(ASIDE), peek("SELECT batch_id FROM sparkherd_fence")) == ([], [], [(None,)])
    sink(2, most=30).write(batch(0, rows))
    assert (peek(ROWS), len(peek(ASIDE))) == ([(100, "a")], 30)


def test_rows_that_spark_has_left_out_count_for_the_bound(sink: MakeSink, batch: Any, peek: Any) -> None:
    """Together with those that are refused; dropped ones are only rows of the batch."""
    bad = sifted(batch, 0, [(1, "too long")], aside=(BROKEN,) * 2)
    with pytest.raises(SinkError, match="3 of 3 rows would be put aside"):
        sink(most=2).write(bad)
    many = sifted(batch, 0, [(1, "a")], aside=(BROKEN,) * 150, dropped=1349)
    with pytest.raises(SinkError, match="150 of 1,500 rows"):
        sink(2, most=1000, ratio=0.09).write(many)
    sink(3, most=1000, ratio=0.1).write(many)
    assert len(peek(ASIDE)) == 150


def test_values_that_no_column_holds_are_put_aside(url: str, batch: Any, peek: Any) -> None:
    """Found before the database is asked: a date beyond the calendar, and NUL in a text of PostgreSQL's."""
    sink = SqlSink(
        SqlOptions(url=url, table="days"),
        Owner("g", "t", 1),
        Beside(DEFAULT_TABLE, Limits(10, 1.0), takes_refused=True),
    )
    sink.claim()
    sink.prepare((Field("day", "date"), Field("name", "string")))
    written = sink.write(batch(0, [(1, "a"), (10**9, "b"), (2, "c\0")]))
    sink.close()
    is_postgres = url.startswith("postgresql")
    assert written.rows == 3 - 1 - is_postgres
    assert [json.loads(row[-1])["name"] for row in peek(ASIDE)] == ["b", "c\0"][: 1 + is_postgres]


def test_a_text_with_half_of_a_character_is_put_aside(sink: MakeSink, batch: Any, peek: Any) -> None:
    """With what JSON has for it, so that it is the same when it is played again."""
    written = sink().write(batch(0, [(1, "a"), (2, "\ud800"), (3, "é😀")]))
    assert (written.rows, peek(ROWS)) == (2, [(1, "a"), (3, "é😀")])
    [row] = peek(ASIDE)
    assert row[3:6] == ("refused", "sink", row[5])
    assert "column name holds half of a character" in row[5]
    assert json.loads(bytes(row[6])) == {"id": 2, "name": "\ud800"}


def test_what_is_put_aside_of_elsewhere_may_have_half_of_a_character(
    sink: MakeSink, batch: Any, peek: Any
) -> None:
    """In what is wrong with it, and in where it came from, it is a question mark."""
    broken = BROKEN._replace(error="no \ud800", origin={"file": "a\udcff.json"})
    sink().write(sifted(batch, 0, [(1, "a")], aside=(broken,)))
    assert peek(f"SELECT error, origin FROM {DEFAULT_TABLE}") == [("no ?", '{"file": "a?.json"}')]


def test_what_is_wrong_with_the_database_is_no_fault_of_a_row(sink: MakeSink, batch: Any, peek: Any) -> None:
    """The batch fails as ever, and nothing is put aside."""
    made = sink()
    peek.run("ALTER TABLE delays RENAME TO gone")
    with pytest.raises(SinkError, match="refused"):
        made.write(batch(0, [(1, "a"), (2, "b")]))
    assert peek(ASIDE) == []


def test_a_row_that_is_upserted_later_in_the_batch_takes_the_place_of_one_before(
    sink: MakeSink, batch: Any, peek: Any
) -> None:
    """Also where the batch is put by halves for a row that is refused."""
    rows = [(1, "a"), (3, "too long"), (1, "b"), (2, "c")]
    sink(mode="upsert", key=("id",)).write(batch(0, rows[:3], rows[3:]))
    assert peek(ROWS) == [(1, "b"), (2, "c")]
    assert [json.loads(row[-1]) for row in peek(ASIDE)] == [{"id": 3, "name": "too long"}]


def test_without_it_a_row_that_is_refused_fails_its_batch(
    url: str, make_sink: MakeSink, batch: Any, peek: Any
) -> None:
    """As ever."""
    peek.run(TABLE)
    with pytest.raises((SinkError, SchemaError)):
        make_sink(1, FIELDS).write(batch(0, [(1, "a"), (2, "too long")]))
    assert peek(ROWS) == []
    del url


def test_without_it_half_of_a_character_fails_its_batch(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """The cause names the column."""
    peek.run(TABLE)
    with pytest.raises(SinkError, match="column name holds half of a character"):
        make_sink(1, FIELDS).write(batch(0, [(1, "a"), (2, "\ud800")]))
    assert peek(ROWS) == []


def test_a_batch_that_nobody_wants_any_more_is_not_searched_to_its_end(
    sink: MakeSink, batch: Any, peek: Any
) -> None:
    """Between tries it is asked; nothing is written."""
    asked = []

    def ask() -> None:
        asked.append(1)
        raise BatchRefusedError("the query is being stopped")

    unwanted = batch(0, [(number, "bad!!" if number % 8 else "ok") for number in range(FEW * ASK_EVERY)])
    unwanted.before_going_on = ask
    with pytest.raises(BatchRefusedError):
        sink(most=2000).write(unwanted)
    assert (len(asked), peek(ROWS), peek(ASIDE)) == (1, [], [])


def test_rows_that_the_ratio_forbids_are_not_looked_for(sink: MakeSink, batch: Any, peek: Any) -> None:
    """However many `max_quarantined_per_batch` would allow."""
    rows = [(number, "bad!!" if number % 2 else "ok") for number in range(400)]
    with pytest.raises(SinkError, match=r"batch 0: 101 of 400 rows .*max_quarantined_ratio"):
        sink(most=1000, ratio=0.1).write(batch(0, rows))
    assert (peek(ROWS), peek(ASIDE)) == ([], [])


def test_a_row_may_come_before_the_one_that_it_refers_to(url: str, batch: Any, peek: Any) -> None:
    """Where the database looks at that at the end only: each row is there then."""
    peek.run(
        "CREATE TABLE tree (id INTEGER PRIMARY KEY,"
        " parent INTEGER REFERENCES tree (id) DEFERRABLE INITIALLY DEFERRED)"
    )
    beside = Beside(DEFAULT_TABLE, Limits(100, 1.0), takes_refused=True)
    made = SqlSink(SqlOptions(url=url, table="tree"), Owner("g", "t", 1), beside)
    made.claim()
    made.prepare((Field("id", "integer"), Field("parent", "integer")))
    made.write(batch(0, [(2, 1), (1, None)]))
    assert (peek("SELECT id FROM tree ORDER BY id"), peek(ASIDE)) == ([(1,), (2,)], [])
    made.close()


def test_many_refused_rows_take_sqlite_few_statements_of_sqlalchemy_s(
    sink: MakeSink, batch: Any, peek: Any, url: str, statements: list[str]
) -> None:
    """Whoever searches has the whole file, and others wait: down to single rows it took hundreds."""
    if not url.startswith("sqlite"):
        return
    made = sink(most=1000)
    statements.clear()
    rows = [(number, "bad!!" if number % 2 else "ok") for number in range(512)]
    assert made.write(batch(0, rows)).left_out.quarantined == 256
    assert peek(ROWS) == rows[::2]
    assert sum("delays" in each for each in statements) < 20


@pytest.mark.parametrize("by", ["trigger", "key"])
def test_a_row_for_which_the_whole_transaction_is_undone_fails_its_batch(
    *, sink: MakeSink, batch: Any, peek: Any, url: str, by: str
) -> None:
    """SQLite lets a trigger or a table do that; nothing is written then, and the cause says what it was."""
    if not url.startswith("sqlite"):
        return
    made = sink()
    if by == "key":
        peek.run("DROP TABLE delays", TABLE.replace("PRIMARY KEY", "PRIMARY KEY ON CONFLICT ROLLBACK"))
    else:
        peek.run(
            "CREATE TRIGGER undoing BEFORE INSERT ON delays WHEN NEW.id = 2 AND NEW.name = 'bad'"
            " BEGIN SELECT RAISE(ROLLBACK, 'a value'); END"
        )
    rows = [(1, "ok"), (2, "ok"), (3, "ok"), (2, "bad"), (4, "ok")]
    said = "UNIQUE constraint failed: delays.id" if by == "key" else "SQLITE_CONSTRAINT_TRIGGER"
    with pytest.raises(SinkError, match=f"undone the whole batch .* it says {said}$"):
        made.write(sifted(batch, 0, [row for row in rows if by == "key" or row != rows[1]], aside=(BROKEN,)))
    assert (peek(ROWS), peek(ASIDE), peek("SELECT batch_id FROM sparkherd_fence")) == ([], [], [(None,)])
    assert made.write(batch(0, rows[:3])).rows == 3


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What databases are told."""
    told: list[str] = []

    def note(*told_of: Any) -> None:
        told.append(told_of[2])

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield told
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def test_staged_rows_have_an_index_once_some_are_refused(
    sink: MakeSink, batch: Any, url: str, limit: str, statements: list[str]
) -> None:
    """In PostgreSQL, which would read all of them with each try; not before, for most batches need none."""
    made = sink()
    made.write(batch(0, [(1, "ok"), (2, "ok")]))
    assert not any(each.startswith("CREATE INDEX") for each in statements)
    made.write(batch(1, [(3, "bad!!"), (4, "ok")], [(5, "bad!!"), (6, "ok")]))
    is_searched = url.startswith("postgresql") and limit == "staged"
    assert sum(each.startswith("CREATE INDEX") for each in statements) == is_searched


def test_whoever_is_late_with_an_attempt_does_not_hold_up_the_search(
    *, sink: MakeSink, batch: Any, peek: Any, limit: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no index then, and the transaction waits for locks as long as it did before."""
    if limit != "staged" or not url.startswith("postgresql"):
        return
    monkeypatch.setattr("worker.sinks.staging_postgres._PATIENCE", sa.text("SET LOCAL lock_timeout = '1ms'"))
    late = batch(0, [(1, "ok"), (2, "bad!!")])
    opened, waits, move_some = [], [], PostgresStaging.move_some

    def hold() -> None:
        [area] = peek.leftovers()
        opened.append(peek.begin())
        opened[0].exec_driver_sql(f'LOCK TABLE "{area}" IN ROW EXCLUSIVE MODE')

    def put(staging: PostgresStaging, connection: Any, *rest: Any) -> None:
        waits.append(connection.exec_driver_sql("SHOW lock_timeout").scalar_one())
        move_some(staging, connection, *rest)

    late.before_return = hold
    monkeypatch.setattr(PostgresStaging, "move_some", put)
    try:
        assert sink().write(late).rows == 1
    finally:
        opened[0].close()
    assert peek(ROWS) == [(1, "ok")]
    assert set(waits) == {f"{LOCK_TIMEOUT_S // 60}min"}
