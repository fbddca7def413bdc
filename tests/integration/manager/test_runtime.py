from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from manager.core.coordinator import RULES
from manager.core.membership import heartbeat as heartbeat_rules
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.sql_storage import SqlStorage
from protocol.messages.membership import HeartbeatRequest
from tests.fakes.turns import settle
from tests.integration.manager.members import error, join, stable
from tests.integration.node import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from manager.core.stored_rows import Record
    from manager.runtime.coordinator_runtime import CoordinatorRuntime


class Shaky(SqlStorage):
    """A real storage that holds commits up, or refuses them, as a test says."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.commits = 0
        self.refusals = 0
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        self.at_gate = asyncio.Event()

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        self.at_gate.set()
        await self.open_gate.wait()
        if self.refusals:
            self.refusals -= 1
            raise StorageError("disk full")
        self.commits += 1
        await super().commit(changes, fence)


@pytest.fixture
def storage(tmp_path: Path) -> Shaky:
    return Shaky(f"sqlite+aiosqlite:///{tmp_path}/m.db")


@pytest.fixture
async def runtime(storage: Shaky) -> AsyncIterator[CoordinatorRuntime]:
    async with running(storage, initial_rebalance_delay_ms=0) as runtime:
        yield runtime


async def test_no_generation_is_told_before_it_is_durable(
    runtime: CoordinatorRuntime, storage: Shaky
) -> None:
    """The join's answer waits for the commit."""
    storage.open_gate.clear()
    asked = asyncio.create_task(runtime.ask("g", join()))
    await storage.at_gate.wait()
    assert not asked.done()
    storage.open_gate.set()
    assert error(await asked) == "NONE"
    assert storage.commits == 1


async def test_one_turn_of_the_loop_is_one_transaction(runtime: CoordinatorRuntime, storage: Shaky) -> None:
    """Twenty groups that complete together share it."""
    await asyncio.gather(*(runtime.ask(f"g{n}", join()) for n in range(20)))
    assert storage.commits == 1


async def test_a_storage_failure_answers_unavailable_and_the_next_attempt_works(
    runtime: CoordinatorRuntime, storage: Shaky
) -> None:
    """Nothing half-done is left behind: the generation goes on from the highest ever told."""
    member = (await stable(runtime)).member_id
    storage.refusals = 1
    assert error(await runtime.ask("g", join(member))) == "COORDINATOR_NOT_AVAILABLE"
    outcome: Any = await until_available(runtime, lambda: join(member))
    assert outcome.generation_id == 2


async def until_available(runtime: CoordinatorRuntime, request: Callable[[], Any]) -> Any:
    """Ask until the group was read again."""
    while True:
        outcome = await runtime.ask("g", request())
        if error(outcome) != "COORDINATOR_NOT_AVAILABLE":
            return outcome
        await settle()


async def test_other_groups_do_not_suffer_from_a_failed_transaction(
    runtime: CoordinatorRuntime, storage: Shaky
) -> None:
    """Heartbeats of a group that was not in it are answered throughout."""
    beat = await stable(runtime, "other")
    storage.open_gate.clear()
    storage.at_gate.clear()
    storage.refusals = 1
    asked = asyncio.create_task(runtime.ask("g", join()))
    await storage.at_gate.wait()
    assert error(await runtime.ask("other", beat)) == "NONE"
    storage.open_gate.set()
    assert error(await asked) == "COORDINATOR_NOT_AVAILABLE"


async def test_a_bug_in_a_rule_costs_one_group_its_memory_and_nothing_else(
    runtime: CoordinatorRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UNKNOWN_SERVER_ERROR with an id; the group is read again and serves."""
    beat = await stable(runtime)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    rules: dict[Any, Any] = RULES
    monkeypatch.setitem(rules, HeartbeatRequest, broken)
    with capture_logs() as logs:
        outcome: Any = await runtime.ask("g", beat)
    assert error(outcome) == "UNKNOWN_SERVER_ERROR"
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["cause_id"] == outcome.fields["cause_id"]
    assert outcome.message.endswith(f"log has more under {line['cause_id']}")
    assert (line["group"], line["member"], line["generation"]) == ("g", beat.member_id, 1)
    monkeypatch.setitem(rules, HeartbeatRequest, heartbeat_rules.heartbeat)
    assert error(await until_available(runtime, lambda: beat)) == "NONE"


async def test_stopping_answers_everything_that_waits(storage: Shaky) -> None:
    """Held heartbeats and parked joins alike: COORDINATOR_NOT_AVAILABLE."""
    async with running(storage, initial_rebalance_delay_ms=60_000) as runtime:
        waiting = [asyncio.create_task(runtime.ask(f"g{n}", join())) for n in range(3)]
        await asyncio.gather(
            *(runtime.ask(f"x{n}", HeartbeatRequest(member_id="", generation_id=0)) for n in "ab")
        )
    assert [error(await task) for task in waiting] == ["COORDINATOR_NOT_AVAILABLE"] * 3
    assert error(await runtime.ask("g", join())) == "COORDINATOR_NOT_AVAILABLE"


async def test_a_restart_on_the_same_database_goes_on(storage: Shaky, tmp_path: Path) -> None:
    """Same generation, same members: a member in Stable notices nothing."""
    async with running(storage, initial_rebalance_delay_ms=0) as first:
        beat = await stable(first)
    async with running(SqlStorage(f"sqlite+aiosqlite:///{tmp_path}/m.db")) as second:
        assert error(await second.ask("g", beat)) == "NONE"


async def test_a_cancelled_request_is_a_broken_connection(storage: Shaky) -> None:
    """The parked join of a stranger is withdrawn with its connection."""
    async with running(storage, initial_rebalance_delay_ms=60_000) as runtime:
        parked = asyncio.create_task(runtime.ask("g", join()))
        await settle()
        parked.cancel()
        await asyncio.wait([parked])
        assert [group.members for group in runtime.groups()] == [0]
