from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg
import pytest

from tests.unit.definition.sink_url_corpus import REFUSED, UNOPENED
from worker.sinks.database import _prepare_sqlite, connect, place, transaction
from worker.sinks.errors import SinkError
from worker.sinks.fence import Owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OWNER = Owner("g", "t", 1)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "is not a SQLAlchemy URL"),
        ("mysql://host/db", "must be of sqlite or postgresql"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        (
            "sqlite:///x.db?mode=ro",
            "its options are cached_statements, check_same_thread, timeout",
        ),
        ("sqlite:///file:x.db?uri=true", "its options are cached_statements"),
        ("postgresql+asyncpg://h/d?ssl=require", 'invalid connection option "ssl"'),
    ],
)
def test_a_url_of_no_use_is_refused(url: str, said: str) -> None:
    """The text names the setting."""
    with pytest.raises(SinkError, match=said) as refused:
        connect(url, OWNER)
    assert "sink.options.url" in str(refused.value)


@pytest.mark.parametrize("url", [*REFUSED, *UNOPENED])
def test_a_url_that_cannot_be_opened_is_one_line_without_secrets(url: str) -> None:
    """Whatever SQLAlchemy or the driver make of it."""
    with pytest.raises(SinkError) as refused:  # noqa: PT012 - whichever of the two
        engine = connect(url, OWNER)
        with transaction(engine):
            pass
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's driver is an extra of the package."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SinkError, match=r"pip install 'sparkherd\[postgres\]'"):
        connect("postgresql://host/db", OWNER)


def test_the_manager_s_kind_of_url_works_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sinks are synchronous; an asynchronous driver in the URL means the same database."""
    engine = connect(f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('db')}/out.db", OWNER)
    assert engine.dialect.driver == "pysqlite"
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    engine.dispose()


def test_each_engine_of_a_file_begins_with_the_write_lock(tmp_path: Path) -> None:
    """What is read under a lock that comes later could be old by the time of the write."""
    engines = [connect(f"sqlite:///{tmp_path}/out.db", Owner("g", "t", token)) for token in (1, 2)]
    for engine in engines:
        with (
            transaction(engine),
            closing(sqlite3.connect(tmp_path / "out.db", timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
    for engine in engines:
        engine.dispose()


def test_options_of_sqlite(tmp_path: Path) -> None:
    """A time-out in the URL is that of the connection."""
    for query, patience_ms in (("", 60_000), ("?timeout=7&check_same_thread=false", 7_000)):
        engine = connect(f"sqlite:///{tmp_path}/out.db{query}", OWNER)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == patience_ms
        engine.dispose()


def test_who_finds_a_new_file_locked_by_another_opens_it_all_the_same(tmp_path: Path) -> None:
    """SQLite's own patience does not cover the change of the journal."""
    other = sqlite3.connect(tmp_path / "out.db", isolation_level=None)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN")
    other.execute("SELECT * FROM t")
    refused = []

    class Impatient(sqlite3.Connection):
        """Meets the other once, and then no more."""

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            try:
                return super().execute(*arguments)
            except sqlite3.OperationalError as error:
                refused.append(error.sqlite_errorname)
                other.close()
                raise

    connection = sqlite3.connect(tmp_path / "out.db", timeout=0, factory=Impatient)
    _prepare_sqlite(connection, None)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert refused == ["SQLITE_BUSY"]
    connection.close()


def test_a_password_is_never_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Errors and logs name the database without it."""
    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('db')}/out.db", OWNER)
    engine.url = engine.url.set(username="me", host="host", password="hunter2")
    assert "hunter2" not in place(engine)
    engine.dispose()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """What the driver is told when it connects to a URL."""
    given: dict[str, Any] = {}

    def keep(*_arguments: Any, **parameters: Any) -> NoReturn:
        given.update(parameters)
        raise EOFError("not today")

    def told(url: str) -> dict[str, Any]:
        given.clear()
        with pytest.raises(EOFError, match="not today"):
            connect(url, OWNER).connect()
        return dict(given)

    for driver in (psycopg, sqlite3.dbapi2):
        monkeypatch.setattr(driver, "connect", keep)
    return told


def test_nobody_waits_for_a_database_for_ever(told: Callable[[str], dict[str, Any]]) -> None:
    """To be let in, or for a lock; the fence row may be locked by a person."""
    postgresql = told("postgresql://host/db")
    assert postgresql["connect_timeout"] == "10"
    assert "-c lock_timeout=60000" in postgresql["options"]
    assert told("sqlite:////nowhere/out.db")["timeout"] == 60


def test_a_url_may_say_how_long_to_wait(told: Callable[[str], dict[str, Any]]) -> None:
    """Its own word counts, beside what is not its to say."""
    url = "postgresql://host/db?connect_timeout=3&options=-c%20lock_timeout%3D500%20-c%20work_mem%3D8MB"
    postgresql = told(url)
    assert postgresql["connect_timeout"] == "3"
    assert postgresql["options"].endswith("-c lock_timeout=60000 -c lock_timeout=500 -c work_mem=8MB")
    assert "idle_in_transaction_session_timeout" in postgresql["options"]
    assert told("sqlite:////nowhere/out.db?timeout=2.5")["timeout"] == 2.5
