"""A worker that froze inside its transaction: what it holds, and for how long."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.sql import SqlOptions
from worker.sinks.errors import FencedError, SinkError
from worker.sinks.fence import Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def frozen(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], threading.Thread]]:
    """Freezes an owner with token 1 in its transaction, between the rows and the fence row."""
    inside, thaw = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def freeze(*_: Any) -> None:
        inside.set()
        assert thaw.wait(60)

    def write(sink: SqlSink) -> None:
        try:
            sink.write(batch(0, [("zombie", 1.0)]))
        except SinkError as error:
            errors.append(error)

    def start() -> threading.Thread:
        sink = make_sink(1)
        monkeypatch.setattr("worker.sinks.fence_table.FenceTable.move", freeze)
        thread = threading.Thread(target=write, args=(sink,))
        thread.start()
        assert inside.wait(60)
        monkeypatch.undo()
        return thread

    start.errors = errors  # type: ignore[attr-defined]  # what became of the zombie
    start.thaw = thaw  # type: ignore[attr-defined]  # lets it go on
    yield start
    thaw.set()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_lets_the_next_owner_in_at_once(
    *, frozen: Any, make_sink: Any, batch: Any, peek: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim ends the frozen session, row lock and all; what it had written is undone."""
    monkeypatch.setattr("worker.sinks.database.IDLE_TRANSACTION_TIMEOUT_MS", 0)
    zombie = frozen()
    owner = make_sink(2)
    assert owner.write(batch(0, [("owner", 1.0)])).rows == 1
    frozen.thaw.set()
    zombie.join()
    assert [type(error) for error in frozen.errors] == [SinkError]
    assert peek("SELECT carrier FROM delays") == [("owner",)]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_sqlite_makes_the_next_owner_wait(
    frozen: Any, open_sink: Callable[..., SqlSink], peek: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows no sessions: the claim fails after a while, and works once the process is gone or thaws."""
    monkeypatch.setattr("worker.sinks.database.LOCK_TIMEOUT_S", 0.1)
    late = open_sink(2)
    monkeypatch.undo()
    zombie = frozen()
    with pytest.raises(SinkError, match="database is locked"):
        late.claim()
    frozen.thaw.set()
    zombie.join()
    assert late.claim().token == 2
    assert len(peek("SELECT carrier FROM delays")) == 1


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_fence_row_that_a_person_has_locked(make_sink: Callable[..., SqlSink], url: str, peek: Any) -> None:
    """The claim fails after as long as the URL says, with its cause, and works when the lock is gone."""
    make_sink(1)
    person = peek.begin()
    person.exec_driver_sql("UPDATE sparkherd_fence SET token = token")
    patience = "options=-c%20lock_timeout%3D100"
    url = f"{url}{'&' if '?' in url else '?'}{patience}"
    late = SqlSink(SqlOptions(url=url, table="delays"), Owner("g", "t", 2))
    with pytest.raises(SinkError, match="refused: canceling statement due to lock timeout"):
        late.claim()
    person.close()
    assert late.claim().token == 2
    late.close()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_sessions_of_others_are_left_alone(make_sink: Callable[..., SqlSink], batch: Any, peek: Any) -> None:
    """Neither other tasks' nor a newer owner's: a zombie that claims ends nobody but itself."""
    other, newest = make_sink(1, task="other"), make_sink(3)
    other.write(batch(0, [("other", 1.0)]))
    newest.write(batch(0, [("newest", 1.0)]))
    names = [f"'sparkherd {sink._owner.digest} {sink._owner.token}'" for sink in (other, newest)]
    sessions = f"SELECT pid FROM pg_stat_activity WHERE application_name IN ({', '.join(names)}) ORDER BY pid"
    before = peek(sessions)
    with pytest.raises(FencedError):
        make_sink(2)
    assert len(before) == 2
    assert peek(sessions) == before
