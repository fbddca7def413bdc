from __future__ import annotations

import threading
import traceback
from typing import Any

import pytest

from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED
from worker.sinks.errors import BatchRefusedError, FencedError
from worker.spark.batches.batch_gate import BatchGate, through_gate

FRAME: Any = object()


def open_gate() -> BatchGate:
    return BatchGate(lambda: True)


def test_a_batch_goes_through() -> None:
    """The function gets the frame and the batch's id; afterwards nobody is inside."""
    gate = open_gate()
    seen: list[tuple[Any, int]] = []
    through_gate(gate, lambda frame, batch_id: seen.append((frame, batch_id)))(FRAME, 7)
    assert seen == [(FRAME, 7)]
    assert not gate.is_occupied
    assert gate.cause is None


def test_a_closed_gate_refuses() -> None:
    """After a stop was asked for no batch begins; refusing is no failure."""
    gate = open_gate()
    gate.close()
    with pytest.raises(BatchRefusedError, match="is being stopped"):
        through_gate(gate, lambda _frame, _batch_id: pytest.fail("it began"))(FRAME, 1)
    assert gate.cause is None


def test_without_the_lease_nothing_begins() -> None:
    """The lease is asked at every entry; its loss is the query's cause."""
    answers = iter([True, False])
    gate = BatchGate(lambda: next(answers))
    batches = through_gate(gate, lambda _frame, _batch_id: None)
    batches(FRAME, 0)
    with pytest.raises(BatchRefusedError):
        batches(FRAME, 1)
    assert gate.cause == "the worker has lost its lease, so it may not write"


@pytest.mark.parametrize("error", [*RAISED, ValueError("no such flight"), BatchRefusedError("cut")])
def test_a_failed_batch_always_leaves_by_raising(error: BaseException) -> None:
    """Returning would commit it, whatever was raised inside; the gate remembers the true cause."""
    gate = open_gate()

    def fail(_frame: Any, _batch_id: int) -> None:
        raise error

    with pytest.raises(BatchRefusedError, match="batch 3 failed"):
        through_gate(gate, fail)(FRAME, 3)
    assert gate.cause is not None
    told = "cut" if isinstance(error, BatchRefusedError) else first_line_of(error)
    assert gate.cause.startswith(told)
    assert not gate.fenced
    assert not gate.is_occupied


def test_a_fenced_batch_is_told_apart() -> None:
    """The worker has to know that the task is somebody else's by now."""
    gate = open_gate()

    def fenced(_frame: Any, _batch_id: int) -> None:
        raise FencedError("an older token")

    with pytest.raises(BatchRefusedError):
        through_gate(gate, fenced)(FRAME, 0)
    assert (gate.cause, gate.fenced) == ("an older token", True)


def test_what_leaves_is_short() -> None:
    """A long traceback overflows the stack of Spark's own regular expression."""

    def deep(_frame: Any, depth: int) -> None:
        if depth == 0:
            raise ValueError("x" * 10_000)
        deep(_frame, depth - 1)

    with pytest.raises(BatchRefusedError) as refused:
        through_gate(open_gate(), deep)(FRAME, 100)
    text = "".join(traceback.format_exception(refused.value))
    assert len(text) < 1000
    assert "ValueError" in text


def test_a_cut_reaches_the_batch_inside() -> None:
    """Closing lets it go on; a cut makes it fail at its next step."""
    gate = open_gate()
    entered, ends = threading.Event(), []

    def run(_frame: Any, _batch_id: int) -> None:
        entered.set()
        assert gate._cut.wait(120)
        gate.check()

    def batch() -> None:
        try:
            through_gate(gate, run)(FRAME, 0)
        except BatchRefusedError as error:
            ends.append(error)

    thread = threading.Thread(target=batch)
    thread.start()
    assert entered.wait(120)
    gate.close()
    occupied = gate.is_occupied
    gate.check()
    gate.cut()
    thread.join()
    assert (occupied, gate.is_occupied) == (True, False)
    assert len(ends) == 1
    assert gate.cause is not None
    assert "cut short" in gate.cause


def test_a_worker_that_thaws_inside_a_batch_finds_out_at_its_next_step() -> None:
    """The lease that held at the entry is gone: the batch is refused between its steps, with that cause."""
    holds = [True]
    gate = BatchGate(lambda: holds[0])

    def freeze(_frame: Any, _batch_id: int) -> None:
        gate.check()
        holds[0] = False
        gate.check()

    with pytest.raises(BatchRefusedError, match="batch 0 failed"):
        through_gate(gate, freeze)(FRAME, 0)
    assert gate.cause == "the worker has lost its lease, so it may not write"


def test_refused_writes_are_told() -> None:
    """By the lease at the entry and inside, by the fence; an asked-for stop or a plain failure is none."""
    may_write, told = True, list[tuple[str, str]]()

    def refused(by: str, why: str) -> None:
        told.append((by, why))

    gate = BatchGate(lambda: may_write, refused)

    def fail_with(error: Exception) -> None:
        def batch(_frame: Any, _batch_id: int) -> None:
            raise error

        with pytest.raises(BatchRefusedError):
            through_gate(gate, batch)(FRAME, 1)

    fail_with(ValueError("a plain failure"))
    assert told == []
    fail_with(FencedError("its token is older"))
    may_write = False
    fail_with(ValueError("never begun"))
    assert [by for by, _ in told] == ["fence", "lease"]
    may_write = True

    def thaw(_frame: Any, _batch_id: int) -> None:
        nonlocal may_write
        may_write = False
        gate.check()

    with pytest.raises(BatchRefusedError):
        through_gate(gate, thaw)(FRAME, 1)
    assert [by for by, _ in told] == ["fence", "lease", "lease"]
    gate.close()
    fail_with(ValueError("never begun"))
    assert len(told) == 3
