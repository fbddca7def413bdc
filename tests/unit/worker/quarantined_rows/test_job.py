"""Requests about quarantined rows: done under the token that they name, and under no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errands import ErrandKind
from protocol.messages.quarantine import UNHEARD, QuarantineAnswer
from tests.unit.worker.errands.bench import TASK, TOKEN, Bench
from tests.unit.worker.quarantined_rows.rows import row
from worker.background import BackgroundTasks
from worker.query_engine import NoQuarantineError, QueryError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with BackgroundTasks() as background:
        yield Bench(background)


async def take(bench: Bench) -> None:
    await bench.take(ErrandKind.QUARANTINE, "q1")


async def test_the_engine_is_asked_about_the_task_as_it_runs_now(bench: Bench) -> None:
    """With its definition and its token; what it says is reported."""
    bench.engine.quarantine_answer = QuarantineAnswer(rows=(row(),), total=1)
    bench.manager.quarantine("list", masked=False, reason="unreadable")
    await take(bench)
    [(spec, request)] = bench.engine.quarantine_requests
    assert (spec.group, spec.task, spec.token, spec.definition) == ("g", TASK, TOKEN, bench.owner.definition)
    assert (request.action, request.reason) == ("list", "unreadable")
    assert bench.outcome == bench.engine.quarantine_answer


async def test_values_do_not_leave_the_worker_where_they_are_to_be_masked(bench: Bench) -> None:
    """Not even for the manager, which has said so."""
    bench.engine.quarantine_answer = QuarantineAnswer(rows=(row(raw='{"carrier": "UA"}'),), total=1)
    bench.manager.quarantine("list", masked=True)
    await take(bench)
    assert "UA" not in repr(bench.manager.reported)
    assert bench.outcome.rows[0].raw == '{"carrier": "xx"}'


@pytest.mark.parametrize("token", [TOKEN - 1, TOKEN + 1])
async def test_a_task_under_another_token_is_not_touched(bench: Bench, token: int) -> None:
    """Be it that it was lost, or that its grant is still on its way."""
    bench.manager.quarantine("replay", token=token)
    await take(bench)
    assert bench.engine.quarantine_requests == []
    assert bench.outcome.code == "TASK_NOT_OWNED"


async def test_a_task_that_is_lost_meanwhile_is_left_alone(bench: Bench) -> None:
    """The engine is told to let it be, and whoever asked hears that some may be done."""
    bench.engine.quarantine_gate.clear()
    bench.manager.quarantine("discard")
    await take(bench)
    bench.owner.lose()
    await bench.clock.advance(0)
    assert bench.engine.quarantine_given_up == 1
    assert bench.outcome.code == "QUARANTINE_INTERRUPTED"
    assert bench.outcome.message == f"the worker has lost task {TASK} meanwhile{UNHEARD}"


@pytest.mark.parametrize(("action", "more"), [("show", ""), ("replay", UNHEARD)])
async def test_its_time_is_over(bench: Bench, action: str, more: str) -> None:
    """Of a replay, but not of a look, it is said that it may be done all the same."""
    bench.engine.quarantine_gate.clear()
    bench.manager.quarantine(action)
    await take(bench)
    await bench.clock.advance(5.1)
    assert bench.outcome.code == "QUARANTINE_TIMED_OUT"
    waited = "it was given up after 5.0 s, and was waiting for the gate of quarantines"
    assert bench.outcome.message == waited + more


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NoQuarantineError("task t puts no rows aside"), "NO_QUARANTINE"),
        (QueryError("the database refuses it\nwith a trace"), "QUARANTINE_FAILED"),
        (QueryError("the brokers are away", outage=True), "QUARANTINE_INTERRUPTED"),
        (QueryError("token 7 is stale", fenced=True), "QUARANTINE_INTERRUPTED"),
    ],
)
async def test_what_the_engine_cannot_do_is_told(bench: Bench, error: Exception, code: str) -> None:
    """With a code that says what to do."""
    bench.engine.quarantine_answer = error
    bench.manager.quarantine("list")
    await take(bench)
    assert (bench.outcome.code, bench.outcome.message) == (code, str(error).partition("\n")[0])


async def test_a_definition_that_cannot_be_read_is_told(bench: Bench) -> None:
    """Of a later version: nothing is known of its quarantine."""
    bench.owner.definition = None
    bench.manager.quarantine("list")
    await take(bench)
    assert bench.outcome.code == "QUARANTINE_FAILED"
    assert bench.outcome.message == "the definition cannot be used: of a later version"
