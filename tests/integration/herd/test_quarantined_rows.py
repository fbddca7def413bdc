"""The way of a request about quarantined rows, from the command line to a worker's engine and back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from protocol.messages.quarantine import QuarantineAnswer
from tests.unit.worker.quarantined_rows.rows import row
from worker.query_engine import NoQuarantineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.herd.herd import Engine, Herd


@pytest.fixture
async def herd(open_herd: Callable[..., Awaitable[Herd]]) -> Herd:
    """Two workers that own a task each."""
    herd = await open_herd()
    await herd.create("t1", "t2")
    herd.hire("anna")
    herd.hire("berta")
    await herd.until_all_run(["t1", "t2"], workers=2)
    return herd


def owner(herd: Herd, task: str) -> tuple[str, Engine]:
    """The worker that runs it, and its engine."""
    [name] = [name for name, share in herd.running().items() if task in share]
    return name, herd._engine[name]


async def test_the_owner_of_the_task_is_asked(herd: Herd) -> None:
    """Whichever that is, each about its own."""
    for task in ("t1", "t2"):
        name, engine = owner(herd, task)
        engine.quarantine_answer = QuarantineAnswer(rows=(row(),), total=1)
        found = await herd.ask("GET", f"/tasks/{task}/quarantine")
        assert (found["worker"], found["rows"][0]["raw"]) == (await herd.member(name), row().raw)
        [(spec, request)] = engine.quarantine_requests
        assert (spec, request.action) == (engine.query(task).spec, "list")


async def test_what_the_engine_cannot_do_is_told(herd: Herd) -> None:
    """With the code of what it was."""
    _, engine = owner(herd, "t1")
    engine.quarantine_answer = NoQuarantineError("task t1 puts no rows aside")
    found = await herd.ask("POST", "/tasks/t1/quarantine/replay", {"all": True})
    assert (found["error"], found["message"]) == ("NO_QUARANTINE", "task t1 puts no rows aside")


async def test_a_replay_under_which_the_owner_dies(herd: Herd) -> None:
    """Whoever asked hears that some may be done; the next owner does the rest."""
    name, engine = owner(herd, "t1")
    engine.quarantine_gate.clear()
    asked = asyncio.create_task(herd.ask("POST", "/tasks/t1/quarantine/replay", {"all": True}))
    await herd.until(lambda: bool(engine.quarantine_requests))
    await herd.kill(name)
    found = await asked
    assert found["error"] == "QUARANTINE_INTERRUPTED"
    assert "may be done all the same" in found["message"]
    await herd.until_all_run(["t1", "t2"], workers=1)
    _, engine = owner(herd, "t1")
    engine.quarantine_answer = QuarantineAnswer(replayed=2)
    again = await herd.ask("POST", "/tasks/t1/quarantine/replay", {"all": True})
    assert (again["error"], again["replayed"]) == ("NONE", 2)


async def test_a_task_that_is_stopped_meanwhile(herd: Herd) -> None:
    """The engine is told to let it be, and a stopped task is nobody's."""
    _, engine = owner(herd, "t1")
    engine.quarantine_gate.clear()
    asked = asyncio.create_task(herd.ask("POST", "/tasks/t1/quarantine/discard", {"ids": ["0-1-2"]}))
    await herd.until(lambda: bool(engine.quarantine_requests))
    await herd.ask("PUT", "/tasks/t1/stop")
    assert (await asked)["error"] == "QUARANTINE_INTERRUPTED"
