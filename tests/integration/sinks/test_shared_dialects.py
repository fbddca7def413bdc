"""What engines for one PostgreSQL learn from each other, and what happens when it is not so any more."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from tests.integration.sinks.conftest import FLIGHT, Peek
from worker.sinks import database
from worker.sinks.database import connect, connect_to_look, transaction
from worker.sinks.errors import SinkError
from worker.sinks.fence import Owner
from worker.sinks.shared_dialects import SharedDialects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from tests.integration.postgres import Server
    from worker.sinks.sql import SqlSink

pytestmark = pytest.mark.parametrize("url", ["postgresql"], indirect=True)
OWNER = Owner("g", "t", 1)
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _knows_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_DIALECTS", SharedDialects(database._postgresql_dialect))


@pytest.fixture
def opened() -> Iterator[Callable[..., Engine]]:
    """Makes engines as sinks do, and closes them when the test is over."""
    engines: list[Engine] = []

    def opened(url: str, owner: Owner = OWNER) -> Engine:
        engines.append(connect(url, owner))
        return engines[-1]

    yield opened
    for engine in engines:
        engine.dispose()


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases that were asked by the sinks' engines what they are, in order."""
    asked: list[str] = []
    ask = PGDialect_psycopg.initialize

    def initialize(dialect: PGDialect_psycopg, connection: Connection) -> None:
        if connection.engine.hide_parameters:
            asked.append(str(connection.engine.url.database))
        ask(dialect, connection)  # type: ignore[no-untyped-call]  # theirs

    monkeypatch.setattr(PGDialect_psycopg, "initialize", initialize)
    return asked


def test_a_start_compiles_nothing_that_one_before_it_has(
    open_sink: Callable[..., SqlSink], batch: Any, learned: list[str]
) -> None:
    """Nor does its first write; the first makes the table, the second is the first to look at one."""

    def compiled(task: str, token: int) -> list[str]:
        sink = open_sink(token, task=task, table=f"delays_{task}")
        missed = note_what_is_compiled(sink._engine)
        started(sink).write(batch(token - 1, [("UA", 1.0)]))
        sink.close()
        return missed

    assert len(compiled("t", 1)) > 5
    assert compiled("t", 2)
    assert [compiled("t", 3), compiled("u", 1), compiled("u", 2)] == [[], [], []]
    assert len(learned) == 1


def note_what_is_compiled(engine: Engine) -> list[str]:
    """The statements that are compiled for the engine from now on."""
    missed: list[str] = []

    @sa.event.listens_for(engine, "before_cursor_execute")
    def note(*told: Any) -> None:
        if told[4].cache_hit is told[4].dialect.CACHE_MISS:
            missed.append(told[2])

    return missed


def test_sessions_stay_each_owner_s_own(url: str, opened: Callable[..., Engine]) -> None:
    """Under its name and token, by which a newer owner finds them; to close some closes no others."""
    one, other = opened(url, Owner("g", "t", 1)), opened(url, Owner("g", "t", 7))
    assert named(one).removesuffix(" 1") == named(other).removesuffix(" 7")
    with other.connect() as connection:
        session = sa.text("SELECT pg_backend_pid()")
        mine = connection.execute(session).scalar()
        one.dispose()
        assert connection.execute(session).scalar() == mine
    assert named(one).endswith(" 1")


def named(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.execute(sa.text("SELECT current_setting('application_name')")).scalar())


def test_starts_at_once_on_a_database_that_was_not_there(
    *, url: str, peek: Peek, opened: Callable[..., Engine], learned: list[str]
) -> None:
    """The first fails as ever and leaves nothing behind; all eight that come together then find it."""
    name = f"{sa.make_url(url).database}_later"
    later = sa.make_url(url).set(database=name).render_as_string(hide_password=False)
    with pytest.raises(SinkError, match=f'database "{name}" does not exist'), transaction(opened(later)):
        pass
    assert learned == []
    with peek.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    together = threading.Barrier(8)

    def start(number: int) -> Any:
        engine = opened(later, Owner("g", f"t{number}", 1))
        together.wait(PATIENCE_S)
        with transaction(engine) as connection:
            assert sa.inspect(connection).get_table_names() == []
            return connection.dialect, connection.dialect.server_version_info

    with ThreadPoolExecutor(8) as threads:
        known = set(threads.map(start, range(8)))
    assert len(known) == 1
    assert known.pop()[1] is not None


def test_what_was_learned_by_half_is_learned_again(
    *, url: str, opened: Callable[..., Engine], learned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the same engine, over another connection: nobody knows what the first one was at."""
    ask = PGDialect_psycopg.initialize
    sessions: list[Any] = []

    def initialize(dialect: PGDialect_psycopg, connection: Connection) -> None:
        ask(dialect, connection)  # type: ignore[no-untyped-call]  # theirs
        sessions.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar())
        connection.exec_driver_sql(f"SELECT 1 / {len(sessions) - 1}")

    monkeypatch.setattr(PGDialect_psycopg, "initialize", initialize)
    engine = opened(url)
    with pytest.raises(SinkError, match="division by zero"), transaction(engine):
        pass
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # it is a queue
    assert named(engine)
    assert named(opened(url))
    assert len(learned) == 2
    assert len(set(sessions)) == 2


def test_nobody_waits_for_a_server_that_says_nothing(
    *, url: str, postgres: Server, opened: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for another database, nor for another connection to the same one."""
    asking, answer = threading.Event(), threading.Event()
    ask = PGDialect_psycopg.initialize

    def initialize(dialect: PGDialect_psycopg, connection: Connection) -> None:
        if not asking.is_set():
            asking.set()
            assert answer.wait(PATIENCE_S)
        ask(dialect, connection)  # type: ignore[no-untyped-call]  # theirs

    monkeypatch.setattr(PGDialect_psycopg, "initialize", initialize)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(named, opened(url))
        try:
            assert asking.wait(PATIENCE_S)
            assert named(opened(postgres.new_database("postgresql")))
            assert named(opened(url))
            assert not slow.done()
        finally:
            answer.set()
        assert slow.result(PATIENCE_S)


def test_another_kind_of_server_is_learned_anew(
    *, url: str, peek: Peek, opened: Callable[..., Engine], learned: list[str]
) -> None:
    """As after an upgrade: what was compiled for the one before is gone, and who runs on goes by the new one.

    The setting stands for the version, which no test can change: both are told at each connection.
    """
    old, new = opened(url), opened(url)
    assert not has_table(old)
    dialect: Any = old.dialect
    question = dialect._has_multi_table_query(None)
    assert not dialect._backslash_escapes
    peek.run(f"ALTER DATABASE {sa.make_url(url).database} SET standard_conforming_strings = off")
    missed = note_what_is_compiled(new)
    assert not has_table(new)
    assert dialect._backslash_escapes
    assert dialect._has_multi_table_query(None) is not question
    assert missed
    old.dispose()
    missed = note_what_is_compiled(old)
    assert not has_table(old)
    assert not missed
    assert len(learned) == 2


def has_table(engine: Engine) -> bool:
    with transaction(engine) as connection:
        return sa.inspect(connection).has_table("t")


@pytest.mark.parametrize(
    ("change", "schema"),
    [
        ("CREATE SCHEMA postgres; CREATE TABLE postgres.delays (LIKE public.delays)", "postgres"),
        ("CREATE SCHEMA s; ALTER ROLE postgres IN DATABASE {} SET search_path = s", "s"),
    ],
)
def test_a_table_is_where_the_role_s_path_leads_by_now(
    *,
    url: str,
    peek: Peek,
    batch: Any,
    open_sink: Callable[..., SqlSink],
    learned: list[str],
    change: str,
    schema: str,
) -> None:
    """Not where it led when the dialect was initialised; the task's fence row stays where it is."""
    started(open_sink(1)).write(batch(0, [("UA", 1.0)]))
    peek.run(*change.format(sa.make_url(url).database).split(";"))
    for token in (2, 3):
        started(open_sink(token)).write(batch(token - 1, [("AA", 2.0)]))
    started(open_sink(1, task="u", table="other")).write(batch(0, [("DL", 3.0)]))
    assert peek("SELECT carrier FROM public.delays") == [("UA",)]
    assert peek(f"SELECT carrier FROM {schema}.delays") == [("AA",)] * 2
    assert peek(f"SELECT carrier FROM {schema}.other") == [("DL",)]
    assert peek("SELECT row_count FROM public.sparkherd_fence ORDER BY task") == [(3,), (1,)]
    assert len(learned) == 1


def started(sink: SqlSink) -> SqlSink:
    sink.claim()
    sink.prepare(FLIGHT)
    return sink


def test_a_table_that_is_made_or_changed_since_is_seen(open_sink: Callable[..., SqlSink], peek: Peek) -> None:
    """Questions are kept, and no answers."""
    started(open_sink(1))
    peek.run("ALTER TABLE delays DROP COLUMN delay", "ALTER TABLE delays ADD COLUMN must int NOT NULL")
    with pytest.raises(SinkError, match="has no column delay"):
        started(open_sink(2))
    peek.run("DROP TABLE delays")
    started(open_sink(3))


def test_names_of_staging_areas_are_not_remembered(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start has one of its own, and a dialect lives as long as its worker."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
    sink = make_sink(1)
    missed = note_what_is_compiled(sink._engine)
    sink.write(batch(0, [("UA", 1.0)]))
    assert any("sparkherd_stage_" in statement for statement in missed)
    preparer: Any = sink._engine.dialect.identifier_preparer
    assert preparer._strings
    assert not [name for name in preparer._strings if "sparkherd_stage_" in name]


def test_what_a_server_notes_is_logged(
    url: str, opened: Callable[..., Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """As with any engine of SQLAlchemy's, for those who ask for its logs."""
    with caplog.at_level("INFO", "sqlalchemy.dialects.postgresql"), transaction(opened(url)) as connection:
        connection.exec_driver_sql("DO $$ BEGIN RAISE NOTICE 'mind the gap'; END $$")
    assert "mind the gap" in caplog.text


def test_who_only_looks_can_change_nothing(
    url: str, opened: Callable[..., Engine], learned: list[str]
) -> None:
    """Neither the first on a database, which learns what it is, nor one after it."""
    for _ in range(2):
        engine = connect_to_look(url, OWNER)
        assert engine is not None
        with pytest.raises(SinkError, match="read-only transaction"), transaction(engine) as connection:
            connection.exec_driver_sql("CREATE TABLE t (x int)")
        engine.dispose()
    with transaction(opened(url)) as connection:
        connection.exec_driver_sql("CREATE TABLE t (x int)")
    assert len(learned) == 1


def test_values_of_hstore_are_text(url: str, peek: Peek, opened: Callable[..., Engine]) -> None:
    """Whenever the type was made; this one has only the name of the extension's."""
    for value in ('"a"=>"1"', '"b"=>"2"'):
        peek.run(f"CREATE TYPE hstore AS ENUM ('{value}')")
        for _ in range(2):
            with transaction(opened(url)) as connection:
                assert connection.exec_driver_sql(f"SELECT '{value}'::hstore").scalar() == value
        peek.run("DROP TYPE hstore")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query": {"ssl": "require"}}, 'sink.options.url: invalid connection option "ssl"'),
        ({"query": {"client_encoding": "nonsense"}}, 'invalid value for parameter "client_encoding"'),
        ({"query": {"sslmode": "wrong"}}, 'invalid sslmode value: "wrong"'),
        ({"database": "absent"}, 'database "absent" does not exist'),
        ({"username": "nobody", "password": "hunter2"}, 'role "nobody" does not exist'),
    ],
)
def test_an_error_is_the_same_after_somebody_s_success(
    url: str, opened: Callable[..., Engine], change: dict[str, Any], says: str
) -> None:
    """It names the setting, or the database without its password; and another success comes after it."""
    right = sa.make_url(url)
    query = {**right.query, **change.get("query", {})}
    wrong = right.set(**{**change, "query": query}).render_as_string(hide_password=False)

    def refused() -> str:
        with pytest.raises(SinkError) as refused, transaction(opened(wrong)):
            pass
        return str(refused.value)

    told = refused()
    assert says in told
    assert "hunter2" not in told
    assert named(opened(url))
    assert refused() == told
    assert named(opened(url))


def test_a_driver_that_is_missing_is_told_after_somebody_s_success(
    url: str, opened: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a worker's environment is made anew under it."""
    assert named(opened(url))
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "psycopg", None)
        with pytest.raises(SinkError, match=r"pip install 'sparkherd\[postgres\]'"):
            opened(url)


def test_a_session_that_was_ended_is_replaced_before_it_is_used(
    *, url: str, peek: Peek, opened: Callable[..., Engine], learned: list[str]
) -> None:
    """As when the server is restarted; what was learned of it stays."""
    engine = opened(url)
    mine = named(engine)
    end = "SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity WHERE application_name ="
    assert peek(f"{end} '{mine}'") == [(True,)]
    assert named(engine) == mine
    assert len(learned) == 1
