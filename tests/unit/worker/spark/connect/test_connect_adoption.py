"""Which queries at a server are taken over, and what is done on the way, step by step."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import Trigger
from tests.fakes.connect_session import FakeSession
from worker.left_out import LeftOut
from worker.query_engine import QueryError
from worker.sinks.fence import Owner
from worker.spark.connect import adoption, batch, session_record
from worker.spark.connect import backend as backend_module
from worker.spark.connect.adoption import ConnectLeftRunning, find_running
from worker.spark.connect.backend import ConnectBackend
from worker.spark.connect.gate_channel import BatchStatus, GateChannel, GateState
from worker.spark.connect.query_session import ConnectQuerySession, FoundSession, sealed
from worker.spark.connect.session_record import end_queries
from worker.spark.connect.sessions import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ID = "00000001-0000-8000-8000-000000000001"
URL = "sc://server:1"
HEIR = Owner("g", "t", 5)
TRIGGER = Trigger(processing_time="2 seconds")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    """That of a former owner, with token 3, whose query has done a batch."""
    session: Any = FakeSession("t")
    channel = GateChannel(session)
    channel.describe(sealed("the same", ID))
    channel.set_status(BatchStatus(token=3, left_out=LeftOut(dropped=2)))
    for module in (adoption, session_record):
        monkeypatch.setattr(module, "open_session", lambda *_: session)
        monkeypatch.setattr(module, "end_session", end)
    return session


def end(session: Any, *, release: bool = True) -> None:
    """As `worker.spark.connect.sessions.end_session`."""
    if release:
        session.release_session()
    session.close()


def found(made_of: str = "the same", owner: Owner = HEIR) -> bool:
    """Whether the query may be taken over."""
    return find_running(URL, ID, owner, made_of) is not None


def test_what_may_be_taken_over(session: Any) -> None:
    """The query of an older owner, made of the same, that has done a batch; its connection stays open."""
    running = find_running(URL, ID, HEIR, "the same")
    assert running is not None
    assert (running.query.name, running.status.left_out.dropped) == ("t", 2)
    assert not session.is_closed


def none_yet(session: Any) -> None:
    GateChannel(session).set_status(BatchStatus())


def its_own(session: Any) -> None:
    GateChannel(session).set_status(BatchStatus(token=5))


def closing(session: Any) -> None:
    GateChannel(session).set_state(3, GateState.CLOSED)


def has_a_newer_heir(session: Any) -> None:
    GateChannel(session).appoint(7)


def another_name(session: Any) -> None:
    session.queries[0].name = "u"


def over(session: Any) -> None:
    session.queries[0].isActive = False


def two(session: Any) -> None:
    session.queries.append(session.queries[0])


def not_described(session: Any) -> None:
    del session.settings["sparkherd.made_of"]


def nonsense(session: Any) -> None:
    session.settings["sparkherd.batch"] = "{"


def nonsense_at_the_gate(session: Any) -> None:
    session.settings["sparkherd.gate.3"] = "ajar"


def gone(session: Any) -> None:
    session.is_gone = True


@pytest.mark.parametrize(
    "case",
    [
        none_yet,
        its_own,
        closing,
        has_a_newer_heir,
        another_name,
        over,
        two,
        not_described,
        nonsense,
        nonsense_at_the_gate,
        gone,
    ],
)
def test_what_may_not(session: Any, case: Callable[[Any], None]) -> None:
    """It is left as it is, and the connection to it is closed: an ordinary start ends it in its time."""
    case(session)
    assert not found()
    assert (session.is_closed, session.is_released) == (True, False)


def test_what_is_made_of_something_else(session: Any) -> None:
    """Left as it is, too. What it is made of is told to nobody who does not know it."""
    assert not found(made_of="another")
    assert session.is_closed
    assert "the same" not in session.settings["sparkherd.made_of"]
    assert sealed("the same", ID) != sealed("the same", ID.replace("1", "2"))


def test_a_server_that_does_not_answer(session: Any) -> None:
    """That is told, and nothing is left open."""
    session.unreadable["sparkherd.batch"] = ConnectionLostError("no answer")
    with pytest.raises(ConnectionLostError):
        found()
    assert (session.is_closed, session.is_released) == (True, False)


class Taking:
    """A heir on its way to the query, and what came of each step of it."""

    def __init__(self, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = session
        self.channel = GateChannel(session)
        self.events: list[object] = []
        self.leases: Iterator[bool] = itertools.repeat(object=True)
        self.noted: Callable[[int], object] = lambda _token: None
        self.clock: Iterator[float] = itertools.repeat(0.0)
        server: Any = SimpleNamespace(remote=URL, pool=None, let_go=self._let_go)
        mine = FoundSession(ID, session, LeftOut(dropped=2))
        self.query_session = ConnectQuerySession(server, HEIR, mine, "/c/g/t", lambda: True)
        self.query_session.is_ours = False
        monkeypatch.setattr(self.query_session, "note_down", self._note)
        self.left = ConnectLeftRunning(
            self.query_session, session.queries[0], lambda: next(self.leases), lambda: next(self.clock)
        )

    def _note(self, token: int) -> None:
        self.events.append(("noted", token, self.channel.newest()))
        self.noted(token)

    def _let_go(self, session: Any, *, is_kept: Callable[[], bool]) -> None:
        end(session, release=not is_kept())

    def at(self, step: str) -> None:
        self.events.append(step)

    def take(self) -> Any:
        return self.left.take_over(TRIGGER, self.at)


@pytest.fixture
def taking(session: Any, monkeypatch: pytest.MonkeyPatch) -> Taking:
    return Taking(session, monkeypatch)


def test_a_query_is_noted_down_then_appointed_and_held(taking: Taking) -> None:
    """What was noted down leads to it whatever happens next; no batch begins before the sink is claimed."""
    taken = taking.take()
    assert taking.events[0] == ("noted", 5, 0)
    assert taking.channel.orders(5) == (GateState.HELD, 5)
    assert taken.handle.interval_ms == 2000
    assert not taken.handle.is_bounded
    assert (taken.committed, taken.handle.progress(-1)) == (None, [])
    assert taking.query_session.is_ours
    assert taking.query_session.output.is_gated
    taking.left.go_on()
    assert taking.channel.orders(5) == (GateState.OPEN, 5)
    taking.query_session.close()
    assert taking.session.is_released


def test_the_batch_under_the_former_token_is_waited_for(taking: Taking) -> None:
    """One under the new token waits at the gate, and for it nobody waits."""
    taking.channel.set_status(BatchStatus(inside=True, token=3))

    def at(step: str) -> None:
        taking.at(step)
        if taking.events.count("the batch that is being done under the former owner") == 3:
            taking.channel.set_status(BatchStatus(inside=True, token=5))

    assert taking.left.take_over(TRIGGER, at) is not None
    assert taking.events[-3:] == ["the batch that is being done under the former owner"] * 3


def test_a_batch_that_takes_too_long_is_not(taking: Taking) -> None:
    """The query is ended then, and the batch done anew."""
    taking.channel.set_status(BatchStatus(inside=True, token=3))
    taking.clock = itertools.count(0.0, adoption.PATIENCE_S / 2)
    assert taking.take() is None
    taking.query_session.close()
    assert taking.session.is_released


def test_a_query_that_ends_meanwhile_is_not_taken_over(taking: Taking) -> None:
    """Nor one whose session is closed."""
    taking.session.queries[0].isActive = False
    assert taking.take() is None
    taking.session.is_gone = True
    assert taking.take() is None


@pytest.mark.parametrize("held", [[False], [True, False]])
def test_a_worker_without_its_lease_appoints_nobody(taking: Taking, held: list[bool]) -> None:
    """However late it notices: to note its query down takes a job of Spark's."""
    taking.leases = iter(held)
    with pytest.raises(QueryError, match="lost its lease"):
        taking.take()
    assert taking.channel.newest() == 0
    taking.query_session.close()
    assert not taking.session.is_released


def test_who_is_not_wanted_any_more_appoints_nobody(taking: Taking) -> None:
    """Its start was given up while it was noted down; the query stays the former owner's."""

    def at(step: str) -> None:
        raise QueryError(f"given up at {step}")

    with pytest.raises(QueryError, match="given up"):
        taking.left.take_over(TRIGGER, at)
    assert taking.channel.newest() == 0
    taking.query_session.close()
    assert not taking.session.is_released


def test_a_newer_owner_keeps_the_query(taking: Taking) -> None:
    """It came while this one was on its way; that is noted down, and its session is left alone."""
    taking.noted = lambda token: taking.channel.appoint(9) if token == 5 else None
    assert taking.take() is None
    assert [event for event in taking.events if isinstance(event, tuple)] == [
        ("noted", 5, 0),
        ("noted", 9, 9),
    ]
    taking.query_session.close()
    assert not taking.session.is_released
    assert taking.session.queries[0].isActive


def test_a_query_that_is_taken_over_once_more_is_left_alone(taking: Taking) -> None:
    """Its former owner gives it up, and closes its own connection."""
    assert taking.take() is not None
    taking.channel.appoint(9)
    taking.query_session.close()
    assert (taking.session.is_closed, taking.session.is_released) == (True, False)


def test_a_newer_owner_that_was_there_before(taking: Taking) -> None:
    """Nothing is written at all."""
    taking.channel.appoint(9)
    assert taking.take() is None
    assert taking.events == []


@pytest.mark.parametrize(
    ("phases", "last"), [({"addBatch": 1, "triggerExecution": 2}, 7), ({"triggerExecution": 2}, 6)]
)
def test_which_batch_is_the_last_of_the_former_owner(taking: Taking, phases: Any, last: int) -> None:
    """A query that has nothing to do tells of the batch to come."""
    taking.session.queries[0].lastProgress = SimpleNamespace(
        batchId=7,
        batchDuration=1,
        timestamp="",
        sources=[],
        durationMs=phases,
        eventTime={},
        stateOperators=[],
    )
    taken = taking.take()
    assert taken.committed == last
    assert [each["batchId"] for each in taken.handle.progress(-1)] == ([] if last == 7 else [7])


def test_the_end_of_a_former_query(session: Any) -> None:
    """It is stopped, and its session is closed; what has a newer owner is left alone, and told."""
    GateChannel(session).appoint(5)
    assert end_queries(URL, ID, "t", 4) == 5
    assert (session.stopped, session.is_released, session.is_closed) == ([], False, True)
    assert end_queries(URL, ID, "t", 5) is None
    assert (session.stopped, session.is_released) == (["t"], True)


def test_what_cannot_be_asked_is_not_ended(session: Any) -> None:
    """It may have a newer owner, which nobody could tell."""
    session.unreadable["sparkherd.heir.5"] = ConnectionLostError("no answer")
    with pytest.raises(ConnectionLostError):
        end_queries(URL, ID, "t", 9)
    assert (session.is_closed, session.is_released) == (True, False)
    session.unreadable.clear()
    session.is_gone = True
    assert end_queries(URL, ID, "t", 9) is None


@pytest.mark.parametrize("is_kept", [True, False, None])
def test_a_session_is_released_by_who_has_it(
    *, session: Any, monkeypatch: pytest.MonkeyPatch, is_kept: bool | None
) -> None:
    """Where that cannot be asked, nobody is there to be told."""
    monkeypatch.setattr(backend_module, "end_session", end)

    def asked() -> bool:
        if is_kept is None:
            raise ConnectionLostError("no answer")
        return is_kept

    backend: Any = SimpleNamespace(_is_lost=False)
    ConnectBackend._end(backend, session, asked)
    assert (session.is_closed, session.is_released) == (True, is_kept is False)


def test_a_sink_is_opened_anew_for_each_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its token, when the one before is closed; for batches of the same owner once."""
    events: list[str] = []

    def open_sink(_definition: Any, owner: Owner, *_: Any) -> Any:
        return SimpleNamespace(
            claim=lambda: events.append(f"claim {owner.token}"),
            prepare=lambda _columns: None,
            close=lambda: events.append(f"close {owner.token}"),
        )

    monkeypatch.setattr(batch, "open_sink", open_sink)
    definition: Any = None
    steps: Any = None
    writing = batch.WriteToSink(batch.SinkOpening(definition, HEIR, ()), steps)
    spark: Any = None
    for token in (5, 5, 8, 8):
        writing._sink_of(replace(HEIR, token=token), spark)
    assert events == ["claim 5", "close 5", "claim 8"]
