"""A sink that is connected before its task is granted, and goes on with that connection."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from definition.sink import Sink
from worker.sinks import spare_connection
from worker.sinks.base import Field, SinkTask
from worker.sinks.errors import SinkError
from worker.sinks.factory import connect_sink, open_sink
from worker.sinks.fence import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.postgres import Server
    from worker.sinks.base import Connected

PATIENCE_S = 60.0
FIELDS = [Field("carrier", "string")]
FIRST, SECOND = Owner("g", "t", 1), Owner("g", "t", 2)


class Sessions:
    """What the server knows of those of ours, and a sink that has none yet."""

    def __init__(self, url: str) -> None:
        self.sink = Sink(format="sql", options={"url": url, "table": "flights"})
        self._engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))

    def ask(self, sql: str) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(sa.text(sql)))

    def names(self) -> dict[int, str]:
        """By the number of the process that serves each."""
        told = self.ask(
            "SELECT pid, application_name FROM pg_stat_activity"
            " WHERE datname = current_database() AND starts_with(application_name, 'sparkherd ')"
        )
        return {row.pid: row.application_name for row in told}

    def until(self, *names: str) -> None:
        """Wait until these are left: a process of the server ends a moment after its session."""
        until = time.monotonic() + PATIENCE_S
        while sorted(self.names().values()) != sorted(names):
            assert time.monotonic() < until, self.names()

    def end(self, pid: int) -> None:
        """As a server does that is shut down."""
        self.ask(f"SELECT pg_terminate_backend({pid}, 5000)")

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def sessions(postgres: Server) -> Iterator[Sessions]:
    found = Sessions(postgres.new_database("postgresql"))
    yield found
    found.close()


def connected(sink: Sink) -> Connected:
    """What is there before anybody has the task."""
    found = connect_sink(sink, "g")
    assert found is not None
    return found


def opened(sink: Sink, owner: Owner, way: Connected) -> Any:
    """The sink of an owner."""
    return open_sink(sink, owner, connected=way)


def test_the_sink_goes_on_with_the_connection_under_its_owner_s_name(sessions: Sessions, batch: Any) -> None:
    """The same process of the server; a newer owner looks for sessions by that name."""
    way = connected(sessions.sink)
    [(pid, nobody)] = sessions.names().items()
    sink = opened(sessions.sink, FIRST, way)
    sink.claim()
    assert sessions.names() == {pid: f"sparkherd {FIRST.digest} 1"}
    assert nobody != f"sparkherd {FIRST.digest} 1"
    sink.prepare(FIELDS)
    sink.write(batch(0, [("UA",)]))
    assert sessions.ask("SELECT carrier FROM flights") == [("UA",)]
    sink.close()
    sessions.until()


def test_a_newer_owner_ends_the_session(sessions: Sessions) -> None:
    """As it does with any of a former owner's, which may be frozen with locks in its hands."""
    former = opened(sessions.sink, FIRST, connected(sessions.sink))
    former.claim()
    newer = opened(sessions.sink, SECOND, connected(sessions.sink))
    newer.claim()
    sessions.until(f"sparkherd {SECOND.digest} 2")
    former.close()
    newer.close()


def test_who_has_the_task_leaves_those_alone_who_wait_for_it(sessions: Sessions) -> None:
    """They have no token, and hold no locks."""
    way = connected(sessions.sink)
    [pid] = sessions.names()
    owner = opened(sessions.sink, FIRST, connected(sessions.sink))
    owner.claim()
    assert pid in sessions.names()
    way.close()
    owner.close()


def test_to_connect_changes_nothing(sessions: Sessions) -> None:
    """No table, and no transaction that would keep others from anything."""
    way = connected(sessions.sink)
    assert sessions.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
    assert sessions.ask(
        "SELECT state FROM pg_stat_activity"
        " WHERE datname = current_database() AND starts_with(application_name, 'sparkherd ')"
    ) == [("idle",)]
    way.close()
    sessions.until()


def test_a_connection_that_is_gone_is_made_anew(sessions: Sessions) -> None:
    """The server may have ended it while the task was pending."""
    way = connected(sessions.sink)
    [pid] = sessions.names()
    sessions.end(pid)
    sink = opened(sessions.sink, FIRST, way)
    sink.claim()
    sessions.until(f"sparkherd {FIRST.digest} 1")
    sink.close()


def test_a_server_that_is_silent_on_it_is_not_waited_for(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a network that was cut: the start makes a connection of its own, as it would without."""
    monkeypatch.setattr(spare_connection, "ANSWER_S", 0.1)
    way = connected(sessions.sink)
    [pid] = sessions.names()
    os.kill(pid, signal.SIGSTOP)
    waking = threading.Timer(PATIENCE_S, os.kill, [pid, signal.SIGCONT])
    waking.start()
    try:
        sink = opened(sessions.sink, FIRST, way)
        sink.claim()
        assert sessions.names()[pid] != f"sparkherd {FIRST.digest} 1"
    finally:
        waking.cancel()
        os.kill(pid, signal.SIGCONT)
    sessions.until(f"sparkherd {FIRST.digest} 1")
    sink.close()


def test_a_sink_that_was_never_used_closes_the_connection(sessions: Sessions) -> None:
    """Its start may fail before the fence."""
    sink = opened(sessions.sink, FIRST, connected(sessions.sink))
    sink.close()
    sessions.until()
    with pytest.raises(SinkError, match="not claimed"):
        sink.prepare(FIELDS)


def test_a_server_that_does_not_answer_is_told_without_its_password() -> None:
    """Nothing is made ready then."""
    url = "postgresql://anna:r1ght-Passphrase@127.0.0.1:1/db"
    with pytest.raises(SinkError) as told:
        connect_sink(Sink(format="sql", options={"url": url, "table": "t"}), "g")
    assert "r1ght" not in str(told.value)


def test_a_file_of_sqlite_s_is_not_made(tmp_path: Path) -> None:
    """To open it takes no time."""
    sink = Sink(format="sql", options={"url": f"sqlite:///{tmp_path}/out.db", "table": "flights"})
    assert connect_sink(sink, "g") is None
    assert list(tmp_path.iterdir()) == []


def test_a_sink_of_another_kind_makes_nothing_ready(tmp_path: Path) -> None:
    """By default: what a format does not do before the claim is left to its start."""
    sink = Sink(format="fenced_files", options={"path": f"{tmp_path}/out"})
    assert connect_sink(sink, "g") is None
    assert SinkTask(FIRST, sink, sink.read_options()).connected is None
    assert list(tmp_path.iterdir()) == []
