"""Queries' sessions on a server: their ids, which tell tokens, and their end."""

from __future__ import annotations

import contextlib
import gc
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from pyspark.sql.connect.client.retries import Retrying
from pyspark.sql.connect.session import SparkSession

from worker.spark.connect.query_session import open_configured
from worker.spark.connect.sessions import LookAgain, Session, new_session_id, token_of


@pytest.mark.parametrize("token", [1, 7, 1_795_346_376, 2**32 - 1])
def test_an_id_tells_the_token(token: int) -> None:
    """As RFC 9562 lets one that has a meaning do: it is a UUID of version 8."""
    made = new_session_id(token)
    assert token_of(made) == token
    assert (UUID(made).version, str(UUID(made))) == (8, made)


def test_no_two_are_the_same() -> None:
    """A session that was closed can never be opened again, so a restart needs another."""
    assert len({new_session_id(7) for _ in range(1000)}) == 1000


def test_other_ids_tell_none() -> None:
    """Those of former versions are random; and a token that does not fit is not told in part."""
    assert token_of(str(uuid4())) is None
    for token in (0, 2**32):
        assert token_of(new_session_id(token)) is None


def test_a_session_that_python_collects_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.1 closes it then, in any thread, and waits for calls that may be waiting for that thread."""
    closed = []
    monkeypatch.setattr(SparkSession, "__del__", lambda _: closed.append(1), raising=False)
    session = Session.__new__(Session)
    del session
    gc.collect()
    assert closed == []


@pytest.mark.parametrize("refused", [None, "spark.b"])
def test_a_session_whose_settings_are_refused_is_ended(
    monkeypatch: pytest.MonkeyPatch, refused: str | None
) -> None:
    """Nobody else knows of it; the query's own settings come after the server's."""
    told: dict[str, str] = {}
    let_go: list[Any] = []

    def take(key: str, value: str) -> None:
        if key == refused:
            raise ValueError(key)
        told[key] = value

    active = SimpleNamespace()
    session = SimpleNamespace(conf=SimpleNamespace(set=take), _active_session=active)
    server: Any = SimpleNamespace(
        remote="sc://x", conf={"spark.a": "1", "spark.b": "1"}, let_go=let_go.append
    )
    monkeypatch.setattr("worker.spark.connect.query_session.open_session", lambda *_: session)
    if refused is None:
        assert open_configured(server, "id", {"spark.a": "2"}) is session
        assert active.session is session
        assert (told, let_go) == ({"spark.a": "2", "spark.b": "1"}, [])
        return
    with pytest.raises(ValueError, match=refused):
        open_configured(server, "id", {"spark.a": "2"})
    assert let_go == [session]


@pytest.mark.parametrize(
    ("told", "calls"),
    [
        ("(SparkSQLException) [INVALID_CURSOR.DISCONNECTED] The cursor has been disconnected", 2),
        ("[INVALID_HANDLE.SESSION_CLOSED] it was closed", 1),
        ("failed to connect to all addresses", 1),
    ],
)
def test_only_a_call_that_the_server_let_go_of_is_made_again(told: str, calls: int) -> None:
    """Whether the session is closed, the next answer says; of an outage the caller hears at once."""
    waited: list[float] = []
    made = []
    with contextlib.suppress(grpc.RpcError):
        for attempt in Retrying([LookAgain()], waited.append):
            with attempt:
                made.append(told)
                if len(made) == 1:
                    raise grpc.RpcError(told)
    assert (len(made), len(waited)) == (calls, calls - 1)
