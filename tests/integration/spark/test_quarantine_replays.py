"""Rows that were put aside are looked at, played again through the present definition, or thrown away."""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from protocol.messages.quarantine import QuarantineRequest
from worker.query_engine import NoQuarantineError, QueryError
from worker.sinks.errors import SinkError
from worker.spark.quarantine import replays
from worker.spark.quarantine.player import Player

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONCE = {"available_now": True}
_numbers = itertools.count()
TABLE = (
    "CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier TEXT CHECK (carrier <> 'B6'),"
    " delay DOUBLE PRECISION)"
)
KNOWN = {"name": "known", "where": "id >= 0", "on_violation": "quarantine"}
SCHEMA = "id BIGINT, carrier STRING, delay DOUBLE"
LINES = [
    '{"id": 1, "carrier": "UA", "delay": 1.0}',
    '{"id": "two"}',
    '{"id": 3, "carrier": "B6", "delay": 1.0}',
    "no json",
    '{"id": -5, "carrier": "UA"}',
]


class Bench:
    """A database, and a task that has put rows aside in it or elsewhere."""

    def __init__(self, url: str, engine: Any, start: Any, spec: Any, folder: Path) -> None:
        self.url = url
        driver = "postgresql+psycopg" if url.startswith("postgresql") else "sqlite"
        self.database = sa.create_engine(sa.make_url(url).set(drivername=driver))
        self.engine = engine
        self.folder = folder
        self._start, self._spec = start, spec
        self.definition: dict[str, Any] = {}
        self.run(TABLE)

    def run(self, statement: str, **values: Any) -> None:
        with self.database.begin() as connection:
            connection.execute(sa.text(statement), values)

    def mend(self, before: str, after: str) -> None:
        """By hand, as people do."""
        self.run(
            "UPDATE sparkherd_quarantine SET raw = :after WHERE raw = :before",
            before=before.encode(),
            after=after.encode(),
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.database.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(sql))]

    def ids(self) -> list[int]:
        return [row[0] for row in self.query("SELECT id FROM flights ORDER BY id")]

    def other_table(self) -> dict[str, Any]:
        return {"format": "sql", "options": {"url": self.url, "table": "others"}}

    async def put_aside(self, *lines: str, **definition: Any) -> None:
        source = self.folder / "in"
        source.mkdir()
        (source / "a.json").write_text("\n".join(lines) + "\n")
        self.definition = {
            "source": {"format": "json", "schema": SCHEMA, "options": {"path": str(source)}},
            "on_error": "quarantine",
            "expect": [KNOWN],
            "sink": {"format": "sql", "options": {"url": self.url, "table": "flights"}},
            "trigger": ONCE,
            **definition,
        }
        query = await self._start(**self.definition)
        assert await query.ended() is None

    async def ask(
        self, action: Any, *, token: int = 1, changes: dict[str, Any] | None = None, **asked: Any
    ) -> Any:
        spec = self._spec("t", token, **(self.definition | (changes or {})))
        request = QuarantineRequest(action=action, masked=False, **asked)
        return await self.engine.quarantine(spec, request)


@pytest.fixture(params=["sqlite", "postgresql"])
def bench(
    request: pytest.FixtureRequest, engine: Any, start: Any, spec: Callable[..., Any], tmp_path: Path
) -> Any:
    """With a real database of each kind."""
    url = f"sqlite:///{tmp_path / 'out.db'}"
    if request.param == "postgresql":
        url = _new_database(request.getfixturevalue("postgres"))
    bench = Bench(url, engine, start, spec, tmp_path)
    yield bench
    bench.database.dispose()


def _new_database(url: str) -> str:
    """On the same server."""
    name = f"replays_{next(_numbers)}"
    engine = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(url).set(database=name).render_as_string(hide_password=False)


def mend(bench: Bench) -> None:
    """The two rows that could not be read."""
    bench.mend(LINES[1], '{"id": 2, "carrier": "AA"}')
    bench.mend(LINES[3], '{"id": 4, "carrier": "AA"}')


async def test_rows_are_listed_the_newest_batch_first(bench: Bench) -> None:
    """With where they came from and why, by reason and name, and one by its id."""
    await bench.put_aside(*LINES)
    found = await bench.ask("list")
    assert (found.total, {row.reason for row in found.rows}) == (4, {"unreadable", "violation", "refused"})
    [row] = (await bench.ask("list", name="known")).rows
    assert (json.loads(row.raw), row.form, row.reason) == ({"id": -5, "carrier": "UA"}, "row", "violation")
    assert (await bench.ask("list", name="know")).total == 0
    unreadable = await bench.ask("list", reason="unreadable", limit=1)
    assert (unreadable.total, len(unreadable.rows)) == (2, 1)
    assert unreadable.rows[0].origin["file"].endswith("a.json")
    [same] = (await bench.ask("show", ids=(row.id,))).rows
    assert same == row


async def test_mended_rows_are_played_again_and_the_quarantine_is_empty(bench: Bench) -> None:
    """The sink has each row once; the definition that holds is the present one."""
    await bench.put_aside(*LINES)
    told = await bench.ask("replay")
    assert (told.replayed, told.stayed) == (0, 4)
    whys = {note.partition(" stays: ")[2] for note in told.notes}
    assert {"known is violated", "source: is no line of json, or is not what source.schema says"} < whys
    mend(bench)
    relaxed = {"expect": [{**KNOWN, "where": "id > -10"}]}
    told = await bench.ask("replay", changes=relaxed)
    assert (told.replayed, told.stayed) == (3, 1)
    assert bench.ids() == [-5, 1, 2, 4]
    assert bench.query("SELECT row_count FROM sparkherd_fence") == [(4,)]
    [left] = (await bench.ask("list")).rows
    bench.mend(left.raw, '{"id": 3}')
    told = await bench.ask("replay", changes=relaxed)
    assert (told.replayed, told.stayed, (await bench.ask("list")).total) == (1, 0, 0)
    assert bench.ids() == [-5, 1, 2, 3, 4]


async def test_rows_go_through_the_sql_again(bench: Bench) -> None:
    """Those that could not be read; of several, only those stay of which something is violated."""
    sql = "SELECT id * 10 AS id, carrier, delay FROM source WHERE id <> 9"
    await bench.put_aside(LINES[0], "a", "b", "c", "d", sql=sql)
    for letter, number in (("a", 2), ("b", -3), ("c", 9), ("d", 4)):
        bench.mend(letter, f'{{"id": {number}}}')
    told = await bench.ask("replay")
    assert (told.replayed, told.stayed) == (3, 1)
    assert bench.ids() == [10, 20, 40]
    assert [row.raw for row in (await bench.ask("list")).rows] == ['{"id": -3}']


async def test_rows_are_thrown_away_only_if_they_are_meant(bench: Bench) -> None:
    """Those of an id, or of a reason."""
    await bench.put_aside(*LINES)
    [row] = (await bench.ask("list", name="known")).rows
    assert (await bench.ask("discard", ids=(row.id,))).discarded == 1
    assert (await bench.ask("discard", ids=(row.id,))).discarded == 0
    assert (await bench.ask("discard", reason="unreadable")).discarded == 2
    assert [each.reason for each in (await bench.ask("list")).rows] == ["refused"]


async def test_an_owner_that_is_overtaken_plays_nothing_again(bench: Bench) -> None:
    """The fence is asked in the transaction that moves a row."""
    await bench.put_aside(*LINES)
    mend(bench)
    bench.run("UPDATE sparkherd_fence SET token = 99")
    with pytest.raises(QueryError) as refused:
        await bench.ask("replay")
    assert refused.value.fenced
    assert (bench.ids(), (await bench.ask("list")).total) == ([1], 4)


async def test_a_task_that_puts_nothing_aside_is_told_so(bench: Bench, tmp_path: Path) -> None:
    """Whatever it is asked."""
    sink = {"format": "fenced_files", "options": {"path": str(tmp_path / "out")}}
    bench.definition = {"source": {"format": "rate"}, "sink": sink}
    with pytest.raises(NoQuarantineError):
        await bench.ask("list")


@pytest.mark.parametrize("crash", [None, "write", "finish"])
async def test_rows_elsewhere_are_played_again_once(
    bench: Bench, monkeypatch: Any, crash: str | None
) -> None:
    """Also if the worker crashes before the sink has them, or before they are removed."""
    other = bench.url.replace("out.db", "aside.db")
    if other == bench.url:
        other = _new_database(bench.url)
    place = {"format": "sql", "options": {"url": other, "table": "aside"}}
    lines = [*LINES[:1], LINES[4]]
    await bench.put_aside(*lines, on_error="fail", quarantine=place)
    assert bench.ids() == [1]
    relaxed = {"expect": [{**KNOWN, "where": "id > -10"}]}
    if crash is not None:
        store = "worker.sinks.quarantine.sql_store.SqlStore.finish"
        monkeypatch.setattr(store if crash == "finish" else "worker.sinks.sql.SqlSink.write", _fail)
        with pytest.raises((SinkError, QueryError)):
            await bench.ask("replay", changes=relaxed)
        monkeypatch.undo()
    told = await bench.ask("replay", token=2, changes=relaxed)
    assert (told.replayed, told.stayed, told.notes) == (1, 0, ())
    assert bench.ids() == [-5, 1]
    assert (await bench.ask("list")).total == 0


async def test_rows_are_played_once_though_the_quarantine_was_elsewhere_meanwhile(
    bench: Bench, monkeypatch: Any, tmp_path: Path
) -> None:
    """A replay's last step is missing in a place that is left, and come back to after replays in another."""
    first, second = (
        {"format": "sql", "options": {"url": f"sqlite:///{tmp_path / name}.db", "table": "aside"}}
        for name in ("first", "second")
    )
    bench.run("CREATE TABLE copies (id BIGINT, carrier TEXT, delay DOUBLE PRECISION)")
    sink = {"format": "sql", "options": {"url": bench.url, "table": "copies"}}
    await bench.put_aside(LINES[4], on_error="fail", quarantine=first, sink=sink)
    relaxed = {"expect": [{**KNOWN, "where": "id > -10"}]}
    monkeypatch.setattr("worker.sinks.quarantine.sql_store.SqlStore.finish", _fail)
    with pytest.raises((SinkError, QueryError)):
        await bench.ask("replay", changes=relaxed)
    monkeypatch.undo()
    assert bench.query("SELECT id FROM copies") == [(-5,)]
    _copy_row(tmp_path / "first.db", tmp_path / "second.db")
    told = await bench.ask("replay", token=2, changes={**relaxed, "quarantine": second})
    assert told.replayed == 1
    told = await bench.ask("replay", token=3, changes=relaxed)
    assert (told.replayed, (await bench.ask("list", token=3)).total) == (1, 0)
    assert bench.query("SELECT id FROM copies") == [(-5,), (-6,)]


def _copy_row(first: Path, second: Path) -> None:
    """As if another batch had been put aside in the second place."""
    with closing(sqlite3.connect(second)) as connection:
        connection.execute("ATTACH ? AS first", (str(first),))
        connection.execute("CREATE TABLE aside AS SELECT * FROM first.aside")
        raw = b'{"id": -6, "carrier": "UA"}'
        connection.execute("UPDATE aside SET replay = NULL, batch_id = 1, raw = ?", (raw,))
        connection.commit()


def _fail(*_: Any) -> Any:
    raise SinkError("crashed")


async def test_rows_in_files_can_be_looked_at_and_no_more(
    start: Any, engine: Any, spec: Callable[..., Any], tmp_path: Path
) -> None:
    """Files are never changed."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text("\n".join(LINES) + "\n")
    files = {
        name: {"format": "fenced_files", "options": {"path": str(tmp_path / name)}}
        for name in ("out", "aside")
    }
    definition = {
        "source": {"format": "json", "schema": SCHEMA, "options": {"path": str(source)}},
        "on_error": "quarantine",
        "sink": files["out"],
        "quarantine": files["aside"],
        "trigger": ONCE,
    }
    query = await start(**definition)
    assert await query.ended() is None

    async def ask(action: Any) -> Any:
        request = QuarantineRequest(action=action, masked=False)
        return await engine.quarantine(spec("t", 1, **definition), request)

    found = await ask("list")
    assert sorted(row.raw for row in found.rows) == ["no json", '{"id": "two"}']
    with pytest.raises(QueryError, match="cannot be taken out of their files"):
        await ask("discard")
    with pytest.raises(QueryError, match="fenced_files takes the batches of its task's query"):
        await ask("replay")


async def test_many_rows_are_played_again_in_rounds(bench: Bench, monkeypatch: Any) -> None:
    """With those that stay in between."""
    monkeypatch.setattr(replays, "ROUND", 3)
    lines = [f'{{"id": {-number}}}' for number in range(1, 12)]
    await bench.put_aside(*lines)
    relaxed = {"expect": [{**KNOWN, "where": "id % 3 <> 0"}]}
    told = await bench.ask("replay", changes=relaxed)
    assert (told.replayed, told.stayed) == (8, 3)
    assert bench.ids() == [-11, -10, -8, -7, -5, -4, -2, -1]


async def test_a_request_that_nobody_waits_for_ends_between_its_steps(bench: Bench) -> None:
    """What is moved is moved, and the rest stays."""
    await bench.put_aside(*LINES)
    mend(bench)
    asking = asyncio.ensure_future(bench.ask("replay"))
    await asyncio.wait({asking}, timeout=0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    total = (await bench.ask("list")).total
    assert len(bench.ids()) + total == len(LINES)


async def test_a_replay_runs_nothing_that_a_start_refuses(bench: Bench) -> None:
    """A condition that calls Java, and a database that no worker was allowed."""
    await bench.put_aside(*LINES)
    java = {"name": "java", "where": "reflect('java.lang.System', 'getProperty', 'user.home') = '/'"}
    with pytest.raises(QueryError, match=r"expect\[0\]\.where"):
        await bench.ask("replay", changes={"expect": [java]})
    sources = {"s": bench.definition["source"], "told": _DERBY}
    with pytest.raises(QueryError, match="jdbc:derby"):
        await bench.ask("replay", changes={"source": None, "sources": sources, "sql": "SELECT s.* FROM s"})
    assert (await bench.ask("list")).total == 4


_DERBY = {
    "format": "jdbc",
    "static": True,
    "options": {"url": "jdbc:derby:memory:x;create=true", "query": "SELECT 1 AS a FROM sysibm.sysdummy1"},
}


async def test_a_row_whose_column_the_result_has_no_more_stays(bench: Bench) -> None:
    """It would be played without that value, and be gone."""
    await bench.put_aside(*LINES)
    changes = {"sql": "SELECT id, carrier AS airline FROM source", "expect": [], "sink": bench.other_table()}
    told = await bench.ask("replay", changes=changes, reason="violation")
    assert (told.replayed, told.stayed) == (0, 1)
    assert "the result has no column carrier any more" in told.notes[0]


async def test_of_two_rows_with_a_key_the_later_one_counts(bench: Bench) -> None:
    """As it would if they had not been put aside."""
    sink = {
        "format": "sql",
        "options": {"url": bench.url, "table": "flights", "mode": "upsert", "key": ["id"]},
    }
    await bench.put_aside('{"id": -1, "carrier": "AA"}', '{"id": -1, "carrier": "UA"}', sink=sink)
    told = await bench.ask("replay", changes={"expect": []})
    assert told.replayed == 2
    assert bench.query("SELECT carrier FROM flights") == [("UA",)]
    [note] = told.notes
    assert "also of one that was written since" in note


async def test_a_row_that_the_sql_fails_on_stays_and_the_others_are_played(bench: Bench) -> None:
    """It is found by halves."""
    sql = "SELECT id, carrier, CAST(carrier AS DOUBLE) AS delay FROM source"
    await bench.put_aside("a", "b", "c", sql=sql)
    for letter, carrier in (("a", "1"), ("b", "x"), ("c", "3")):
        bench.mend(letter, f'{{"id": {carrier if carrier != "x" else 2}, "carrier": "{carrier}"}}')
    told = await bench.ask("replay")
    assert (told.replayed, told.stayed, bench.ids()) == (2, 1, [1, 3])
    assert "CAST_INVALID_INPUT" in told.notes[0]


async def test_a_row_that_is_mended_meanwhile_is_not_lost(bench: Bench, monkeypatch: Any) -> None:
    """What was read of it is not what is there any more."""
    await bench.put_aside(*LINES)
    mend(bench)
    rows = Player.rows

    def mended_meanwhile(player: Player, given: Any) -> Any:
        bench.mend('{"id": 2, "carrier": "AA"}', '{"id": 22, "carrier": "AA"}')
        return rows(player, given)

    monkeypatch.setattr(Player, "rows", mended_meanwhile)
    with pytest.raises(QueryError, match="were changed or taken"):
        await bench.ask("replay", reason="unreadable")
    monkeypatch.undo()
    assert (await bench.ask("replay", reason="unreadable")).replayed == 2
    assert bench.ids() == [1, 4, 22]


async def test_an_owner_that_is_overtaken_throws_nothing_away(bench: Bench) -> None:
    """Others may have put rows aside since it was asked."""
    await bench.put_aside(*LINES)
    bench.run("UPDATE sparkherd_fence SET token = 99")
    with pytest.raises(QueryError) as refused:
        await bench.ask("discard")
    assert refused.value.fenced
    assert (await bench.ask("list")).total == 4
