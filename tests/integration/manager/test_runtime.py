from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from manager.core.coordinator import RULES
from manager.core.membership import heartbeat as heartbeat_rules
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.sql import SqlStorage
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import HeartbeatRequest, JoinRequest, Protocol, SyncRequest
from tests.fakes.turns import settle
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from manager.core.rows import Record
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
    node = await started_node(storage, initial_rebalance_delay_ms=0)
    yield node.runtime
    await node.leave()


def join(member_id: str = "", **fields: Any) -> JoinRequest:
    return JoinRequest(
        member_id=member_id,
        session_timeout_ms=1_000_000,
        rebalance_timeout_ms=60_000,
        protocol_type="test",
        protocols=(Protocol("range", encode_opaque({})),),
        require_member_id=False,
        **fields,
    )


async def stable(runtime: CoordinatorRuntime, group: str = "g") -> str:
    joined: Any = await runtime.ask(group, join())
    await runtime.ask(group, SyncRequest(member_id=joined.member_id, generation_id=joined.generation_id))
    return str(joined.member_id)


def error(outcome: Any) -> str:
    return outcome.code.name if isinstance(outcome, Failure) else str(outcome.error)


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
    member = await stable(runtime)
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
    other = await stable(runtime, "other")
    storage.open_gate.clear()
    storage.at_gate.clear()
    storage.refusals = 1
    asked = asyncio.create_task(runtime.ask("g", join()))
    await storage.at_gate.wait()
    beat = await runtime.ask("other", HeartbeatRequest(member_id=other, generation_id=1))
    assert error(beat) == "NONE"
    storage.open_gate.set()
    assert error(await asked) == "COORDINATOR_NOT_AVAILABLE"


async def test_a_bug_in_a_rule_costs_one_group_its_memory_and_nothing_else(
    runtime: CoordinatorRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UNKNOWN_SERVER_ERROR with an id; the group is read again and serves."""
    member = await stable(runtime)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    rules: dict[Any, Any] = RULES
    monkeypatch.setitem(rules, HeartbeatRequest, broken)
    beat = HeartbeatRequest(member_id=member, generation_id=1)
    with capture_logs() as logs:
        outcome: Any = await runtime.ask("g", beat)
    assert error(outcome) == "UNKNOWN_SERVER_ERROR"
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["cause_id"] == outcome.fields["cause_id"]
    assert outcome.message.endswith(f"log has more under {line['cause_id']}")
    assert (line["group"], line["member"], line["generation"]) == ("g", member, 1)
    monkeypatch.setitem(rules, HeartbeatRequest, heartbeat_rules.heartbeat)
    assert error(await until_available(runtime, lambda: beat)) == "NONE"


async def test_stopping_answers_everything_that_waits(storage: Shaky) -> None:
    """Held heartbeats and parked joins alike: COORDINATOR_NOT_AVAILABLE."""
    node = await started_node(storage, initial_rebalance_delay_ms=60_000)
    runtime = node.runtime
    waiting = [asyncio.create_task(runtime.ask(f"g{n}", join())) for n in range(3)]
    await asyncio.gather(
        *(runtime.ask(f"x{n}", HeartbeatRequest(member_id="", generation_id=0)) for n in "ab")
    )
    await node.leave()
    assert [error(await task) for task in waiting] == ["COORDINATOR_NOT_AVAILABLE"] * 3
    assert error(await runtime.ask("g", join())) == "COORDINATOR_NOT_AVAILABLE"


async def test_a_restart_on_the_same_database_goes_on(storage: Shaky, tmp_path: Path) -> None:
    """Same generation, same members: a member in Stable notices nothing."""
    first = await started_node(storage, initial_rebalance_delay_ms=0)
    member = await stable(first.runtime)
    await first.leave()
    second = await started_node(SqlStorage(f"sqlite+aiosqlite:///{tmp_path}/m.db"))
    beat = await second.runtime.ask("g", HeartbeatRequest(member_id=member, generation_id=1))
    await second.leave()
    assert error(beat) == "NONE"


async def test_a_cancelled_request_is_a_broken_connection(storage: Shaky) -> None:
    """The parked join of a stranger is withdrawn with its connection."""
    node = await started_node(storage, initial_rebalance_delay_ms=60_000)
    runtime = node.runtime
    parked = asyncio.create_task(runtime.ask("g", join()))
    await settle()
    parked.cancel()
    await asyncio.wait([parked])
    assert [group.members for group in runtime.groups()] == [0]
    await node.leave()
