"""The connection to a Spark Connect server: how its loss is noticed."""

from __future__ import annotations

import queue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, SparkException

from protocol.connectors import Formats
from worker.query_engine import SparkKind
from worker.spark.connect import backend as backend_module
from worker.spark.connect.backend import ConnectBackend
from worker.spark.connect.query_session import ConnectQuerySession
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.query_engine import EngineDeath

SETTINGS = SparkSettings(app_name="tests", checkpoint_root="/nowhere", remote="sc://server:15002")
BROKEN = SparkException("[INTERNAL_ERROR] The server has a bug.")


class Session:
    """Answers pings as the test says; the last answer stays."""

    def __init__(self) -> None:
        self.conf = self
        self.client = self
        self.answers: list[Exception | None] = []
        self.pinged: queue.SimpleQueue[None] = queue.SimpleQueue()

    def get(self, _key: str) -> str:
        self.pinged.put(None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer
        return "UTC"

    def release_session(self) -> None:
        """As PySpark's."""

    def close(self) -> None:
        """As PySpark's."""

    _on_exit = close


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def backend(session: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectBackend]:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(backend_module, "_PING_EVERY_S", 0.001)
    backend = ConnectBackend(SETTINGS, "sc://server:15002", session, SparkKind("4.1.4", Formats()))
    yield backend
    backend.close()


def watched(backend: ConnectBackend) -> queue.SimpleQueue[EngineDeath]:
    """What the watcher tells."""
    told: queue.SimpleQueue[EngineDeath] = queue.SimpleQueue()
    backend.watch(told.put)
    return told


def test_an_error_of_the_server_s_is_no_end_of_the_watch(backend: ConnectBackend, session: Session) -> None:
    """It goes on, and so a server that is lost afterwards is told."""
    session.answers = [None, BROKEN, None, SparkException("[INVALID_HANDLE.SESSION_CLOSED] It is closed.")]
    death = watched(backend).get(timeout=120)
    assert death.how.startswith(
        "the Spark Connect server sc://server:15002 has been restarted, or has closed"
    )


@pytest.mark.parametrize("answer", [BROKEN, SparkConnectGrpcException("gone"), RuntimeError("a bug of ours")])
def test_a_server_that_gives_no_answer_is_lost(
    backend: ConnectBackend, session: Session, monkeypatch: pytest.MonkeyPatch, answer: Exception
) -> None:
    """Whatever it says instead of one, for long enough."""
    monkeypatch.setattr(backend_module, "LOST_AFTER_S", 0.05)
    session.answers = [answer]
    death = watched(backend).get(timeout=120)
    assert death.how.startswith("the Spark Connect server sc://server:15002 does not answer: ")


def test_what_comes_after_the_end_is_let_go(backend: ConnectBackend, session: Any) -> None:
    """A query that was still being stopped has nothing left to end."""
    backend.close()
    backend.let_go(session)


def test_a_query_has_begun_when_it_has_its_turn_at_the_server() -> None:
    """While it waits for others it can be called back still."""
    order: list[str] = []

    class Turn:
        def __enter__(self) -> None:
            order.append("its turn")

        def __exit__(self, *_error: object) -> None:
            order.append("the next one's")

    class Writer:
        _write_proto = SimpleNamespace(
            available_now=False, once=False, processing_time_interval="2 seconds", options={}
        )

        def option(self, _key: str, _value: str) -> Writer:
            return self

        def start(self) -> None:
            order.append("started")

    session: Any = ConnectQuerySession.__new__(ConnectQuerySession)
    session.output = SimpleNamespace(begin=lambda writer: writer.start())
    session.checkpoint = SimpleNamespace(place="/nowhere")
    session._server = SimpleNamespace(starting=Turn())
    session.start(Writer(), lambda: order.append("begun"))
    assert order == ["its turn", "begun", "started", "the next one's"]
