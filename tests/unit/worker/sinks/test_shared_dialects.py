"""Which engines have a dialect and compiled statements in common, and which things they have not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from worker.sinks.database import _postgresql_dialect, connect
from worker.sinks.fence import Owner
from worker.sinks.shared_dialects import SharedDialects

if TYPE_CHECKING:
    from sqlalchemy import URL, Dialect, Engine

OWNER = Owner("g", "t", 1)


def url(database: str = "db") -> URL:
    return sa.make_url(f"postgresql+psycopg://me:secret@host/{database}?options=-c%20a%3D1")


class Making:
    """Makes dialects, and remembers for which databases."""

    def __init__(self) -> None:
        self.made: list[str | None] = []

    def __call__(self, url: URL) -> Dialect:
        self.made.append(url.database)
        return _postgresql_dialect(url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+asyncpg"])
def test_engines_of_one_url_share_what_they_compile(scheme: str) -> None:
    """Whatever the driver that the URL names; connections are each one's own."""
    one = connect("postgresql+psycopg://me:secret@host/db", OWNER)
    other = connect(f"{scheme}://me:secret@host/db", Owner("g", "u", 7))
    assert one.dialect is other.dialect
    assert statements(one) is statements(other)
    assert one.pool is not other.pool


@pytest.mark.parametrize(
    "different",
    [
        "postgresql://you:secret@host/db",
        "postgresql://me:another@host/db",
        "postgresql://me:secret@host/db2",
        "postgresql://me:secret@host:5433/db",
        "postgresql://me:secret@host/db?options=-c%20search_path%3Da",
    ],
)
def test_engines_of_urls_that_differ_share_nothing(different: str) -> None:
    """By user, password, place or options: a statement may mean something else there."""
    one, other = connect("postgresql://me:secret@host/db", OWNER), connect(different, OWNER)
    assert one.dialect is not other.dialect
    assert statements(one) is not statements(other)


def test_an_engine_is_as_a_sink_needs_it() -> None:
    """Errors without values, parameters by position, one connection that is tried before it is used."""
    engine = connect("postgresql://me:secret@host/db", OWNER)
    assert engine.hide_parameters
    assert engine.dialect.paramstyle == "format"
    assert (engine.pool.size(), engine.pool._pre_ping) == (1, True)  # type: ignore[attr-defined]  # a queue


def test_the_database_that_was_used_least_recently_is_forgotten() -> None:
    """And is learned anew when somebody comes back to it."""
    making = Making()
    dialects = SharedDialects(making, most=2)
    for database in ("a", "b", "a", "c", "a", "b"):
        dialects.engine(url(database), {})
    assert making.made == ["a", "b", "c", "b"]


def test_a_dialect_that_cannot_be_made_is_not_remembered() -> None:
    """The next one to come tries again."""
    tries: list[URL] = []

    def make(url: URL) -> Dialect:
        tries.append(url)
        if len(tries) == 1:
            raise ModuleNotFoundError(name="psycopg")
        return _postgresql_dialect(url)

    dialects = SharedDialects(make)
    with pytest.raises(ModuleNotFoundError):
        dialects.engine(url(), {})
    assert dialects.engine(url(), {}).dialect is dialects.engine(url(), {}).dialect
    assert len(tries) == 2


def test_nobody_is_held_up_while_a_dialect_is_made() -> None:
    """A driver may take its time to be imported."""

    def make(url: URL) -> Dialect:
        assert not dialects._lock.locked()
        return _postgresql_dialect(url)

    dialects = SharedDialects(make)
    dialects.engine(url(), {})


def test_two_that_come_at_once_get_the_same() -> None:
    """Though each has made one."""
    making = Making()
    first: list[Engine] = []

    def make(url: URL) -> Dialect:
        made = making(url)
        if len(making.made) == 1:
            first.append(dialects.engine(url, {}))
        return made

    dialects = SharedDialects(make)
    second = dialects.engine(url(), {})
    assert second.dialect is first[0].dialect
    assert making.made == ["db", "db"]


def test_a_password_is_not_shown_by_what_is_remembered() -> None:
    """It is a key in memory only."""
    dialects = SharedDialects(_postgresql_dialect)
    engine = dialects.engine(url(), {"application_name": "me"})
    assert "secret" not in f"{vars(dialects)} {vars(engine)} {vars(dialects._of(url()))}"


def statements(engine: Engine) -> object:
    return engine.get_execution_options()["compiled_cache"]
