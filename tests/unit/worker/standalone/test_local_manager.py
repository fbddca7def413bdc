"""Who grants tasks where there is no manager: what it asks of sinks, and when it is over."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.messages.ownership import ClaimRequest
from protocol.messages.tasks import TaskReset
from protocol.states import TaskState
from tests.fakes.clock import FakeClock
from tests.fakes.turns import settle
from tests.unit.worker.standalone.local_tasks import local
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, Mark
from worker.standalone.local_manager import (
    LOOKS,
    LocalManager,
    LocalTask,
    has_failed,
    is_over,
    require_checkpoint,
)
from worker.standalone.token_file import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


BOUNDED: dict[str, Any] = {"trigger": {"available_now": True}}


class Impatient(FakeClock):
    """Nobody sleeps by it; it knows for how long they would have."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def local_manager_of(
    look: Callable[[LocalTask], FenceRow | None], tokens: TokenFile, clock: FakeClock
) -> LocalManager:
    """Of one task, `a`."""
    return LocalManager([local("a")], tokens=tokens, look=look, changed=lambda: None, clock=clock)


async def test_a_sink_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    """Without its row the task might begin under a token that is used already, and without its resets."""
    looks: list[str] = []

    def look(task: LocalTask) -> FenceRow:
        looks.append(task.name)
        if len(looks) < LOOKS:
            raise ConnectionResetError("postgresql://u:geheim@db/x")
        return FenceRow(57, resets=2)

    clock = Impatient()
    with TokenFile(tmp_path / "t.json", lambda: 0) as tokens, capture_logs() as logs:
        manager = local_manager_of(look, tokens, clock)
        request = ClaimRequest(member_id="m", generation_id=1, tasks=("a",), wait_ms=60_000)
        (granted,) = (await manager.claim(request)).granted
    assert (granted.token, granted.reset) == (58, TaskReset(2))
    assert [each["why"] for each in logs] == ["ConnectionResetError: postgresql://u:***@db/x"] * (LOOKS - 1)
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


async def test_a_sink_that_never_answers_is_left_to_the_start_of_the_query(tmp_path: Path) -> None:
    """Which says what is wrong, and is tried again as restarts go."""
    clock = Impatient()

    def look(_: LocalTask) -> FenceRow:
        raise SinkError("no route to host")

    with TokenFile(tmp_path / "t.json", lambda: 0) as tokens:
        manager = local_manager_of(look, tokens, clock)
        request = ClaimRequest(member_id="m", generation_id=1, tasks=("a",), wait_ms=60_000)
        (granted,) = (await manager.claim(request)).granted
    assert (granted.token, granted.reset) == (1, None)
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


async def test_at_its_end_a_run_asks_no_sink_any_more(tmp_path: Path) -> None:
    """Nobody waits for the next look, nor for its answer."""
    looks: list[str] = []
    clock = FakeClock()

    def look(task: LocalTask) -> FenceRow:
        looks.append(task.name)
        raise SinkError("no route to host")

    with TokenFile(tmp_path / "t.json", lambda: 0) as tokens, capture_logs() as logs:
        manager = local_manager_of(look, tokens, clock)
        request = ClaimRequest(member_id="m", generation_id=1, tasks=("a",), wait_ms=60_000)
        claim = asyncio.ensure_future(manager.claim(request))
        while not logs:
            await settle()
        manager.close()
        await clock.advance(60)
        with pytest.raises(asyncio.CancelledError):
            await claim
    assert looks == ["a"]


async def test_two_claims_that_wait_for_one_sink_get_one_token(tmp_path: Path) -> None:
    """A second one would cut the query that the first has started, and fence it."""
    answered = threading.Event()

    def look(_: LocalTask) -> FenceRow:
        answered.wait(60)
        return FenceRow(57)

    with TokenFile(tmp_path / "t.json", lambda: 0) as tokens:
        manager = local_manager_of(look, tokens, FakeClock())
        request = ClaimRequest(member_id="m", generation_id=1, tasks=("a",), wait_ms=60_000)
        claims = [asyncio.ensure_future(manager.claim(request)) for _ in range(2)]
        await settle()
        answered.set()
        granted = [(await claim).granted for claim in claims]
    assert [[grant.token for grant in each] for each in granted] == [[58], [58]]


def test_checkpoints_elsewhere_are_the_query_s_business() -> None:
    """What is no folder of this machine cannot be looked at here; a new task has none."""
    require_checkpoint("s3a://bucket/x", "g", "t", FenceRow(1, last=Mark("c", 0)))
    require_checkpoint("nowhere", "g", "t", FenceRow(1))
    with pytest.raises(QueryError, match=r"--checkpoint-root"):
        require_checkpoint("file:///nowhere", "g", "t", FenceRow(1, last=Mark("c", 0)))


@pytest.mark.parametrize(
    ("states", "once", "over"),
    [
        ({}, False, False),
        ({"bounded": "COMPLETED"}, True, True),
        ({"bounded": "FAILED", "other": "RUNNING"}, True, True),
        ({"bounded": "RESTARTING", "other": "FAILED"}, True, False),
        ({"bounded": "COMPLETED"}, False, False),
        ({"bounded": "COMPLETED", "other": "RUNNING"}, False, False),
        ({"bounded": "COMPLETED", "other": "STARTING"}, False, False),
        ({"bounded": "COMPLETED", "other": "PAUSED"}, False, True),
        ({"bounded": "COMPLETED", "other": "STOPPED"}, False, True),
        ({"bounded": "COMPLETED", "other": "FAILED"}, False, True),
    ],
)
def test_when_it_is_over(states: dict[str, str], *, once: bool, over: bool) -> None:
    """The rule as a table."""
    tasks = [local("bounded", **BOUNDED), local("other")]
    now = {task: TaskState(state) for task, state in states.items()}
    assert is_over(tasks, now, once=once) is over
    assert has_failed(now) is ("FAILED" in states.values())
