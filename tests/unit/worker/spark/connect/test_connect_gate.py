"""Both sides of a gate whose batches are done on the server, over a session whose calls may fail."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from worker.left_out import LeftOut
from worker.sinks.errors import BatchRefusedError
from worker.sinks.fence import Owner
from worker.spark.batches.batch_gate import through_gate
from worker.spark.connect.gate import ConnectGateControl, ConnectGateEntry
from worker.spark.connect.gate_channel import GateChannel, GateState
from worker.spark.connect.sessions import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME: Any = object()
GATE = "sparkherd.gate.1"


class Session:
    """Its settings, which both sides see."""

    def __init__(self) -> None:
        self.conf = self.client = self
        self.settings: dict[str, str] = {}
        self.unreadable: dict[str, Exception] = {}

    def get(self, key: str, default: str) -> str:
        if key in self.unreadable:
            raise self.unreadable[key]
        return self.settings.get(key, default)

    def get_config_with_defaults(self, *pairs: tuple[str, str]) -> tuple[str, ...]:
        self.asked()
        return tuple(self.get(key, default) for key, default in pairs)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def asked(self) -> None:
        """The batches' process is about to read what is wanted of it."""


@pytest.fixture
def session() -> Session:
    return Session()


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
    session: Session,
) -> None:
    """It has said that it is, and then does not begin: a stop would wait for it until its time is up."""
    session.unreadable[GATE] = error
    with pytest.raises(refusal):
        through_gate(batches, begun)(FRAME, 1)
    assert not worker.is_occupied


def test_a_wish_of_a_later_version_lets_nothing_in(
    batches: ConnectGateEntry, worker: ConnectGateControl, session: Session
) -> None:
    """Nor does it leave a batch inside."""
    session.settings[GATE] = "ajar"
    with pytest.raises(ValueError, match="ajar"):
        through_gate(batches, begun)(FRAME, 1)
    assert not worker.is_occupied


def test_a_closed_gate_refuses(
    batches: ConnectGateEntry, worker: ConnectGateControl, session: Session
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
    session: Session, batches: ConnectGateEntry, worker: ConnectGateControl
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
    heirs = iter([2, 4])

    def appoint_another() -> None:
        for token in heirs:
            GateChannel(session).appoint(token)
            return

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
