"""Both sides of a gate whose batches are done on the server, over a session whose calls may fail."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from tests.fakes.connect_session import FakeSession
from worker.left_out import LeftOut
from worker.sinks.errors import BatchRefusedError
from worker.sinks.fence import Owner
from worker.spark.batches.batch_gate import through_gate
from worker.spark.connect.gate import HELD_AT_MOST_S, ConnectGateControl, ConnectGateEntry
from worker.spark.connect.gate_channel import BatchStatus, GateChannel, GateState
from worker.spark.connect.sessions import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME: Any = object()
GATE = "sparkherd.gate.1"


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def batches(session: Any) -> ConnectGateEntry:
    return ConnectGateEntry(GateChannel(session), Owner("g", "t", 1))


@pytest.fixture
def worker(session: Any) -> Iterator[ConnectGateControl]:
    with ThreadPoolExecutor(1) as pool:
        yield ConnectGateControl(GateChannel(session), pool, 1)


def begun(_frame: Any, _batch_id: int) -> None:
    pytest.fail("it began")


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (SparkConnectGrpcException("gone"), BatchRefusedError),
        (RuntimeError("the session's connection is closed"), RuntimeError),
    ],
)
def test_a_batch_that_could_not_ask_is_not_inside(
    *,
    error: Exception,
    refusal: type[Exception],
    batches: ConnectGateEntry,
    worker: ConnectGateControl,
    session: FakeSession,
) -> None:
    """It has said that it is, and then does not begin: a stop would wait for it until its time is up."""
    session.unreadable["sparkherd.gate.1"] = error
    with pytest.raises(refusal):
        through_gate(batches, begun)(FRAME, 1)
    assert not worker.is_occupied


def test_a_wish_of_a_later_version_lets_nothing_in(
    batches: ConnectGateEntry, worker: ConnectGateControl, session: FakeSession
) -> None:
    """Nor does it leave a batch inside."""
    session.settings[GATE] = "ajar"
    with pytest.raises(ValueError, match="ajar"):
        through_gate(batches, begun)(FRAME, 1)
    assert not worker.is_occupied


def test_a_closed_gate_refuses(
    batches: ConnectGateEntry, worker: ConnectGateControl, session: FakeSession
) -> None:
    """Nobody is inside then, and nobody was done."""
    session.settings[GATE] = GateState.CLOSED.value
    with pytest.raises(BatchRefusedError, match="being stopped"):
        through_gate(batches, begun)(FRAME, 1)
    assert not worker.is_occupied


def test_a_batch_is_inside_as_long_as_it_is_done(
    batches: ConnectGateEntry, worker: ConnectGateControl
) -> None:
    """The worker sees it there, and gone."""
    seen: list[bool] = []
    through_gate(batches, lambda _frame, _batch_id: seen.append(worker.is_occupied))(FRAME, 1)
    assert (seen, worker.is_occupied) == ([True], False)


def test_what_was_counted_stays_so_while_the_server_does_not_answer(
    session: FakeSession, batches: ConnectGateEntry, worker: ConnectGateControl
) -> None:
    """Zeros in between would look like a query that was begun anew; no batch is known to be inside."""
    batches.enter()
    batches.count(7, LeftOut(quarantined=2, reasons={"refused": 2}))
    batches.leave()
    batches.enter()
    assert (worker.total, worker.left_out.quarantined, worker.is_occupied) == (7, 2, True)
    session.unreadable["sparkherd.batch"] = ConnectionLostError("no answer")
    assert (worker.total, worker.left_out.quarantined, worker.is_occupied) == (7, 2, False)
    del session.unreadable["sparkherd.batch"]
    batches.count(9, LeftOut(quarantined=1, reasons={"refused": 1}))
    batches.leave()
    assert (worker.total, worker.left_out.quarantined) == (9, 3)


@pytest.fixture
def heir(session: Any) -> Iterator[ConnectGateControl]:
    """The next owner's side, when three rows had been dropped under the one before."""
    with ThreadPoolExecutor(1) as pool:
        yield ConnectGateControl(GateChannel(session), pool, 2, LeftOut(dropped=3, reasons={"late": 3}))


def test_batches_are_done_for_the_heir(
    session: Any, batches: ConnectGateEntry, worker: ConnectGateControl, heir: ConnectGateControl
) -> None:
    """From the first that begins after it was appointed; to the former owner nobody is inside then."""
    batches.enter()
    GateChannel(session).appoint(2)
    assert (batches.owner.token, worker.is_occupied, heir.is_occupied) == (1, True, False)
    batches.check()
    batches.leave()
    batches.enter()
    assert (batches.owner.token, worker.is_occupied, heir.is_occupied) == (2, False, True)


def test_what_a_former_owner_wants_later_nobody_reads(
    session: Any, batches: ConnectGateEntry, worker: ConnectGateControl, heir: ConnectGateControl
) -> None:
    """It closes and cuts what it takes for its own query, for it was frozen meanwhile."""
    GateChannel(session).appoint(2)
    worker.close()
    worker.cut()
    assert not worker.is_occupied
    batches.enter()
    batches.check()
    heir.cut()
    assert heir.is_occupied
    with pytest.raises(BatchRefusedError, match="cut short"):
        batches.check()


def test_heirs_that_come_one_after_another(session: Any, batches: ConnectGateEntry) -> None:
    """The newest has the batch, also if it is appointed while the batch asks; an older one never."""
    heirs = [2, 4]

    def appoint_another() -> None:
        if heirs:
            GateChannel(session).appoint(heirs.pop(0))

    session.asked = appoint_another
    batches.enter()
    assert batches.owner.token == 4
    batches.leave()
    GateChannel(session).appoint(3)
    batches.enter()
    assert batches.owner.token == 4


def test_an_heir_that_finds_nobody_inside_has_the_next_batch(
    session: Any, batches: ConnectGateEntry, heir: ConnectGateControl
) -> None:
    """Whenever the batch comes in between: it says that it is inside before it asks for heirs."""
    seen: list[bool] = []

    def look() -> None:
        GateChannel(session).appoint(2)
        seen.append(GateChannel(session).status().inside)

    session.asked = look
    batches.enter()
    assert (seen[0], batches.owner.token, heir.is_occupied) == (True, 2, True)


def test_an_heir_counts_what_it_has_left_out_itself(
    batches: ConnectGateEntry, worker: ConnectGateControl, heir: ConnectGateControl
) -> None:
    """The process counts from the query's start, whoever has it."""
    batches.count(7, LeftOut(dropped=3, reasons={"late": 3}))
    batches.enter()
    assert (worker.left_out.dropped, heir.left_out) == (3, LeftOut())
    batches.count(9, LeftOut(dropped=1, quarantined=2, reasons={"late": 1, "refused": 2}))
    batches.leave()
    assert heir.left_out == LeftOut(1, 2, {"late": 1, "refused": 2})


def test_a_batch_waits_for_an_heir_that_has_it_held(session: Any) -> None:
    """Until the fence is up: then it begins, under the heir's token. A newer one takes a dead one's place."""
    channel = GateChannel(session)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            assert channel.status().token == 2
            channel.set_state(3, GateState.HELD)
            channel.appoint(3)
        if len(waits) == 4:
            assert channel.status() == BatchStatus(inside=True, token=3)
            channel.set_state(3, GateState.OPEN)

    batches = ConnectGateEntry(channel, Owner("g", "t", 1), now=lambda: 0.0, sleep=sleep)
    channel.set_state(2, GateState.HELD)
    channel.appoint(2)
    batches.enter()
    assert (len(waits), batches.owner.token) == (4, 3)


def test_a_batch_does_not_wait_for_ever(session: Any) -> None:
    """Its heir has died, and no other one has come: the query ends, and nobody is inside."""
    channel = GateChannel(session)
    clock = itertools.count(0.0, HELD_AT_MOST_S / 3)
    batches = ConnectGateEntry(channel, Owner("g", "t", 1), now=lambda: next(clock), sleep=lambda _: None)
    channel.set_state(2, GateState.HELD)
    channel.appoint(2)
    with pytest.raises(BatchRefusedError, match="a new owner that does not go on"):
        batches.enter()
    assert not channel.status().inside


def test_an_heir_that_comes_late_takes_nothing_from_a_newer_one(session: Any) -> None:
    """Whichever of the two is appointed last, and whatever else somebody has put among the settings."""
    channel = GateChannel(session)
    channel.appoint(8)
    channel.appoint(7)
    session.settings |= {"sparkherd.heir.soon": "", "sparkherd.heir": "99", "spark.heir.100": ""}
    assert channel.newest() == 8
    assert channel.orders(7) == (GateState.OPEN, 8)


def test_counts_of_an_heir_that_could_not_ask_yet(session: Any, heir: ConnectGateControl) -> None:
    """It has left out none so far; what was left out before is not taken off from nothing."""
    session.unreadable["sparkherd.batch"] = ConnectionLostError("no answer")
    assert heir.left_out == LeftOut()
