"""The connection to a Spark Connect server: how its loss is noticed."""

from __future__ import annotations

import queue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, SparkException

from worker.spark.connect import engine as engine_module
from worker.spark.connect.engine import ConnectEngine
from worker.spark.connect.site import RemoteSite
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.executor import EngineDeath

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
def engine(session: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectEngine]:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(engine_module, "_PING_EVERY_S", 0.001)
    engine = ConnectEngine(SETTINGS, "sc://server:15002", session)
    yield engine
    engine.close()


def watched(engine: ConnectEngine) -> queue.SimpleQueue[EngineDeath]:
    """What the watcher tells."""
    told: queue.SimpleQueue[EngineDeath] = queue.SimpleQueue()
    engine.watch(told.put)
    return told


def test_an_error_of_the_server_s_is_no_end_of_the_watch(engine: ConnectEngine, session: Session) -> None:
    """It goes on, and so a server that is lost afterwards is told."""
    session.answers = [None, BROKEN, None, SparkException("[INVALID_HANDLE.SESSION_CLOSED] It is closed.")]
    death = watched(engine).get(timeout=120)
    assert death.how.startswith(
        "the Spark Connect server sc://server:15002 has been restarted, or has closed"
    )


@pytest.mark.parametrize("answer", [BROKEN, SparkConnectGrpcException("gone"), RuntimeError("a bug of ours")])
def test_a_server_that_gives_no_answer_is_lost(
    engine: ConnectEngine, session: Session, monkeypatch: pytest.MonkeyPatch, answer: Exception
) -> None:
    """Whatever it says instead of one, for long enough."""
    monkeypatch.setattr(engine_module, "LOST_AFTER_S", 0.05)
    session.answers = [answer]
    death = watched(engine).get(timeout=120)
    assert death.how.startswith("the Spark Connect server sc://server:15002 does not answer: ")


def test_what_comes_after_the_end_is_let_go(engine: ConnectEngine, session: Any) -> None:
    """A query that was still being stopped has nothing left to end."""
    engine.close()
    engine.let_go(session)


def test_a_query_has_begun_when_it_has_its_turn_at_the_server() -> None:
    """While it waits for others it can be called back still."""
    order: list[str] = []

    class Turn:
        def __enter__(self) -> None:
            order.append("its turn")

        def __exit__(self, *_error: object) -> None:
            order.append("the next one's")

    class Writer:
        _write_proto = SimpleNamespace(available_now=False, once=False, options={})

        def option(self, _key: str, _value: str) -> Writer:
            return self

        def start(self) -> None:
            order.append("started")

    site: Any = RemoteSite.__new__(RemoteSite)
    site.checkpoint = SimpleNamespace(place="/nowhere")
    site._server = SimpleNamespace(starting=Turn())
    site.start(Writer(), lambda: order.append("begun"))
    assert order == ["its turn", "begun", "started", "the next one's"]
