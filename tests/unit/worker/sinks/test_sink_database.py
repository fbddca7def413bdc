from __future__ import annotations

import sys

import pytest

from worker.sinks.base import Owner
from worker.sinks.database import connect, place
from worker.sinks.errors import SinkError

OWNER = Owner("g", "t", 1)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "is no SQLAlchemy URL"),
        ("mysql://host/db", "must be of sqlite or postgresql, not mysql"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
    ],
)
def test_a_url_of_no_use_is_refused(url: str, said: str) -> None:
    """The text names the setting."""
    with pytest.raises(SinkError, match=said) as refused:
        connect(url, OWNER)
    assert "sink.options.url" in str(refused.value)


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


def test_a_password_is_never_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Errors and logs name the database without it."""
    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('db')}/out.db", OWNER)
    engine.url = engine.url.set(username="me", host="host", password="hunter2")
    assert "hunter2" not in place(engine)
    engine.dispose()
