"""Queries that several owners have in turn: what is noted down of them, what a former owner leaves alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from protocol.names import MAX_NAME_LENGTH
from worker.sinks.fence import Owner
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.handle import RemoteHandle
from worker.spark.connect.session_record import (
    NotedSession,
    SessionRecord,
    noted_session,
    read_session_records,
)
from worker.spark.connect.sessions import new_session_id
from worker.spark.folder_names import MOST_BYTES


class Query:
    """A query at the server."""

    isActive = True  # noqa: N815 - PySpark's name

    def __init__(self) -> None:
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


@pytest.mark.parametrize("has_heir", [True, False])
def test_who_gives_up_a_query_that_has_an_heir_leaves_it_running(*, has_heir: bool) -> None:
    """To its former owner it is over all the same, and the cause says where it went."""
    query: Any = Query()
    handle = RemoteHandle(query, lambda: has_heir, is_bounded=False, commits_late=False)
    handle.halt()
    assert query.stops == (0 if has_heir else 1)
    assert handle.has_terminated() == has_heir
    if has_heir:
        assert handle.progress(-1) == []
        failure = handle.failure()
        assert failure is not None
        assert failure.cause.startswith("another worker has taken the query over")


def test_batches_that_a_former_owner_has_told_of_are_not_told_again() -> None:
    """Those after them are, be they done before the query was taken over or since."""
    records = [_record(batch_id) for batch_id in range(6)]
    query: Any = SimpleNamespace(lastProgress=records[-1], recentProgress=records[:-1])
    handle = RemoteHandle(query, lambda: False, is_bounded=False, commits_late=False, former=2)
    assert [each["batchId"] for each in handle.progress(-1)] == [3, 4, 5]
    assert [each["batchId"] for each in handle.progress(4)] == [5]
    assert handle.progress(5) == []


def _record(batch_id: int) -> Any:
    return SimpleNamespace(
        batchId=batch_id,
        batchDuration=4,
        timestamp="2026-01-01T00:00:00Z",
        sources=[],
        durationMs={},
        eventTime={},
        stateOperators=[],
    )


def test_what_is_noted_down_of_a_query() -> None:
    """Entries of former versions are a session's id, which tells the token; anything else is no entry."""
    session = new_session_id(4)
    full = NotedSession(session=session, token=7)
    assert noted_session(msgspec.json.encode(full).decode() + "\n") == full
    assert noted_session(f"{session}\n") == NotedSession(session=session, token=4)
    older = str(uuid4())
    assert noted_session(older) == NotedSession(session=older)
    for token in (-1, 2**60):
        assert noted_session(f'{{"session": "{session}", "token": {token}}}') is None
    for text in (
        None,
        "",
        "no id",
        '{"session": "no id", "token": 3}',
        '{"token": 3}',
        "[]",
        "7",
        "[" * 100_000,
    ):
        assert noted_session(text) is None


def test_what_an_owner_writes_is_what_the_next_one_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the checkpoint: which session, and whose it is."""
    texts: dict[str, str] = {}
    session: Any = None
    record = SessionRecord("sc://x", Owner("g", "t", 7), session, "/c/g/t")
    folder = SimpleNamespace(create=texts.__setitem__, read=texts.get)
    monkeypatch.setattr(record, "_folder", folder)
    record.write(new_session_id(4), 9)
    assert list(texts) == ["t~session"]
    noted = record.read()
    assert noted is not None
    assert noted.token == 9


def test_a_name_that_no_folder_can_have_is_in_the_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager is asked about the task by its whole name, as it is about those of former versions."""
    texts: dict[str, str] = {}
    session: Any = None
    long = "t" * MAX_NAME_LENGTH + "~after~1795346403"
    record = SessionRecord("sc://x", Owner("g", long, 7), session, f"/c/g/{long}")
    monkeypatch.setattr(record, "_folder", SimpleNamespace(create=texts.__setitem__, read=texts.get))
    record.write(new_session_id(4), 9)
    texts["old~session"] = new_session_id(5)
    assert max(map(len, texts)) <= MOST_BYTES
    entries = {name.removesuffix("~session"): text for name, text in texts.items()}
    monkeypatch.setattr(DataFrameCheckpoint, "read_all", lambda *_: entries)
    assert {(each.task, each.token) for each in read_session_records(session, "/c/g")} == {
        (long, 9),
        ("old", 5),
    }
