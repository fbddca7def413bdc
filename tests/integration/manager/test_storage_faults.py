"""Real storage with real faults: what waits is answered, nothing told is lost, and it goes on by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from manager.clock import read_clocks
from manager.core.commands import CreateTask, DescribeGroup, NewDefinition
from manager.core.coordinator import GroupCoordinator
from manager.runtime import retry_timer, writer
from manager.settings import GroupSettings
from manager.storage import sql_engines
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.sql_storage import SqlStorage
from protocol.messages.base import encode_opaque
from protocol.messages.membership import (
    HeartbeatRequest,
    Leaver,
    LeaveRequest,
    MemberAssignment,
    Protocol,
    SyncRequest,
)
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit
from protocol.messages.ownership import ClaimRequest
from protocol.states import Target
from tests.fakes.rows import durable
from tests.fakes.turns import eventually, settle, turn
from tests.integration.manager import members
from tests.integration.manager.faults import FAULTS, fault
from tests.integration.manager.members import error
from tests.integration.node import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from manager.core.stored_rows import Record
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.base import Request
    from tests.integration.manager.backends import Database

BUSY_S = 0.05
AWAY = "COORDINATOR_NOT_AVAILABLE"
PADDING = encode_opaque("x" * 30_000)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a lock waits for it a twentieth of a second."""
    monkeypatch.setattr(retry_timer, "FIRST_PAUSE_S", BUSY_S)
    monkeypatch.setattr(sql_engines, "LOCK_MS", int(BUSY_S * 1000))


@pytest.fixture
async def runtime(database: Database) -> AsyncIterator[CoordinatorRuntime]:
    async with running(SqlStorage(database.url), initial_rebalance_delay_ms=0) as started:
        yield started


def join(member_id: str = "") -> Request:
    return members.join(member_id, protocol_type="sparkherd", protocols=(Protocol("sticky", PADDING),))


def task(name: str) -> CreateTask:
    definition = NewDefinition(document=PADDING, weight=1.0, worker=None, labels={})
    return CreateTask(task=name, definition=definition, target=Target.RUNNING)


def ready(runtime: CoordinatorRuntime) -> bool:
    return runtime.is_ready


class Member:
    """One that brought the group to Stable; its next step is whichever request needs the storage."""

    def __init__(self, runtime: CoordinatorRuntime, group: str) -> None:
        self.runtime = runtime
        self.group = group
        self.id = ""
        self.generation = 0

    async def ask(self, request: Request) -> Any:
        return await self.runtime.ask(self.group, request)

    async def settle(self) -> None:
        """Until Stable, however often it takes: a task, one member, everything assigned to it."""
        await self.until_answered(lambda: task("t"))
        joined = await self.until_answered(lambda: join(self.id))
        self.id, self.generation = joined.member_id, joined.generation_id
        await self.until_answered(self.sync)

    def sync(self) -> SyncRequest:
        given = (MemberAssignment(self.id, encode_opaque({"tasks": ["t"]})),)
        return SyncRequest(member_id=self.id, generation_id=self.generation, assignments=given)

    async def until_answered(self, request: Callable[[], Request]) -> Any:
        """Ask until the manager is available."""
        async with asyncio.timeout(120):
            while error(outcome := await self.ask(request())) == AWAY:
                await asyncio.to_thread(lambda: None)
        return outcome

    def steps(self) -> dict[str, Request]:
        here: dict[str, Any] = {"member_id": self.id, "generation_id": self.generation}
        offsets = {"k": OffsetToCommit(offset=PADDING)}
        return {
            "join": join(self.id),
            "claim": ClaimRequest(**here, tasks=("t",)),
            "leave": LeaveRequest(members=(Leaver(self.id),)),
            "commit": CommitOffsetsRequest(**here, offsets=offsets),
            "create": task("new"),
        }


async def settled(runtime: CoordinatorRuntime, group: str = "g") -> Member:
    member = Member(runtime, group)
    await member.settle()
    return member


async def in_memory_and_stored(runtime: CoordinatorRuntime, group: str) -> tuple[Any, Any]:
    """What the group is in memory, and what a manager that starts now would find."""
    living = runtime._coordinator.group(group)
    stored = (await runtime._storage.load([group])).get(group, [])
    fresh = GroupCoordinator(GroupSettings(), lambda: "")
    fresh.load(group, stored, read_clocks())
    restored = fresh.group(group)
    return (durable(living) if living else {}), (durable(restored) if restored else {})


@pytest.mark.parametrize("step", ["join", "claim", "leave", "commit", "create"])
@pytest.mark.parametrize(("database", "name"), FAULTS, indirect=["database"])
async def test_a_fault_in_the_middle_is_survived(
    runtime: CoordinatorRuntime, database: Database, name: str, step: str, request: pytest.FixtureRequest
) -> None:
    """The waiting hear COORDINATOR_NOT_AVAILABLE, others go on, and what follows needs no restart."""
    member, other = await settled(runtime), await settled(runtime, "other")
    with fault(name, database, request):
        assert error(await member.ask(member.steps()[step])) == AWAY
        assert not ready(runtime)
        beat = HeartbeatRequest(member_id=other.id, generation_id=other.generation)
        assert error(await other.ask(beat)) == "NONE"
    described = await member.until_answered(DescribeGroup)
    assert described.generation_id == member.generation
    assert [m.member_id for m in described.members] == [member.id]
    outcome = await member.until_answered(lambda: member.steps()[step])
    assert error(outcome) == "NONE"
    if step == "join":
        assert outcome.generation_id == member.generation + 1
    assert ready(runtime)
    living, stored = await in_memory_and_stored(runtime, "g")
    assert living == stored


@pytest.fixture
async def sync_parked(runtime: CoordinatorRuntime) -> Member:
    """In AwaitingSync."""
    member = await settled(runtime)
    joined = await member.ask(join(member.id))
    member.generation = joined.generation_id
    return member


async def test_an_assignment_that_could_not_be_stored_was_never_made(
    runtime: CoordinatorRuntime, database: Database, sync_parked: Member, request: pytest.FixtureRequest
) -> None:
    """The generation stays told: after the fault the group gathers again under the next one."""
    with fault("locked", database, request):
        assert error(await sync_parked.ask(sync_parked.sync())) == AWAY
    joined = await sync_parked.until_answered(lambda: join(sync_parked.id))
    assert joined.generation_id == sync_parked.generation + 1
    living, stored = await in_memory_and_stored(runtime, "g")
    assert living == stored


class Deaf(SqlStorage):
    """Commits, and then loses the answer."""

    is_deaf = False

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        await super().commit(changes, fence)
        if self.is_deaf:
            self.is_deaf = False
            raise StorageError("server closed the connection unexpectedly")


async def test_a_commit_of_unknown_outcome_is_read_again(database: Database) -> None:
    """It was durable: its generation is counted as told, though nobody heard of it."""
    storage = Deaf(database.url)
    async with running(storage, initial_rebalance_delay_ms=0) as runtime:
        member = await settled(runtime)
        storage.is_deaf = True
        assert error(await member.ask(join(member.id))) == AWAY
        joined = await member.until_answered(lambda: join(member.id))
        assert joined.generation_id == member.generation + 2
        living, stored = await in_memory_and_stored(runtime, "g")
        assert living == stored


async def test_while_the_storage_is_away_everything_that_needs_it_is_refused_at_once(
    runtime: CoordinatorRuntime, database: Database, request: pytest.FixtureRequest
) -> None:
    """However many ask, nothing is kept of them, and the storage is looked for ever more rarely."""
    member = await settled(runtime)
    inner = runtime._writer
    with fault("locked", database, request):
        assert error(await member.ask(join(member.id))) == AWAY
        async with asyncio.timeout(120):
            while not inner._is_away:
                await asyncio.to_thread(lambda: None)
        for n in range(200):
            asked = asyncio.create_task(runtime.ask(f"new{n}", join()))
            await settle(10)
            assert asked.done(), "it waited for something"
            assert error(asked.result()) == AWAY
        assert not inner._commits.has_work
        assert inner._commits.waiting() == []
        assert runtime.parked == 0
        assert not ready(runtime)
    assert error(await member.until_answered(lambda: join(member.id))) == "NONE"
    assert error(await Member(runtime, "new7").until_answered(join)) == "NONE"


async def test_a_row_that_cannot_be_stored_ends_nothing(runtime: CoordinatorRuntime) -> None:
    """Not even one that the driver itself chokes on: its group is read again, the writer goes on."""
    member = await settled(runtime)
    bad = NewDefinition(document=PADDING, weight=1.0, worker="\ud800", labels={})
    assert error(await member.ask(CreateTask(task="bad", definition=bad, target=Target.RUNNING))) == AWAY
    assert error(await member.until_answered(lambda: task("good"))) == "NONE"


class Hanging(SqlStorage):
    """Says neither yes nor no, until it is let go."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        await self.gate.wait()
        await super().commit(changes, fence)


async def test_nobody_waits_for_ever_for_a_storage_that_hangs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who wait are answered, who comes later is answered at once; what was stored in the end counts."""
    storage = Hanging(database.url)
    async with running(storage, initial_rebalance_delay_ms=0) as runtime:
        member = await settled(runtime)
        monkeypatch.setattr(writer, "STALL_S", BUSY_S)
        storage.gate.clear()
        assert error(await member.ask(join(member.id))) == AWAY
        assert error(await member.ask(join(member.id))) == AWAY
        assert error(await runtime.ask("new", join())) == AWAY
        assert not ready(runtime)
        storage.gate.set()
        joined = await member.until_answered(lambda: join(member.id))
        assert joined.generation_id > member.generation
        await eventually(lambda: ready(runtime))


async def test_stopping_does_not_wait_for_a_storage_that_hangs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting are answered, and the process may end."""
    storage = Hanging(database.url)
    async with running(storage, initial_rebalance_delay_ms=0) as runtime:
        member = await settled(runtime)
        storage.gate.clear()
        asked = asyncio.create_task(member.ask(join(member.id)))
        await turn()
        monkeypatch.setattr(writer, "STALL_S", BUSY_S)
        await runtime.stop()
        assert error(await asked) == AWAY


SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$
"""
TRIGGER = "CREATE TRIGGER slow BEFORE UPDATE ON groups FOR EACH ROW EXECUTE FUNCTION slow()"
OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
"""

postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@postgresql
async def test_a_statement_that_takes_too_long_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends it; whoever waited is told to come again."""
    monkeypatch.setattr(sql_engines, "STATEMENT_MS", 1000)
    async with running(SqlStorage(database.url), initial_rebalance_delay_ms=0) as runtime:
        member = await settled(runtime)
        database.run(SLOW, TRIGGER)
        assert error(await member.ask(join(member.id))) == AWAY
        database.run("DROP TRIGGER slow ON groups")
        assert error(await member.until_answered(lambda: join(member.id))) == "NONE"


@postgresql
async def test_a_connection_that_breaks_costs_one_request(
    runtime: CoordinatorRuntime, database: Database
) -> None:
    """Every pooled connection is dead; the next attempt finds new ones."""
    member = await settled(runtime)
    database.run(OTHERS)
    assert error(await member.ask(join(member.id))) == AWAY
    joined = await member.until_answered(lambda: join(member.id))
    assert joined.generation_id == member.generation + 1


@postgresql
async def test_a_deadlock_is_survived(
    database: Database, monkeypatch: pytest.MonkeyPatch, runtime: CoordinatorRuntime
) -> None:
    """Both wait for the other, the server picks the manager as its victim: as if nothing had been asked."""
    monkeypatch.setattr(sql_engines, "LOCK_MS", 0)
    member = await settled(runtime)
    row = 'UPDATE {} SET "group" = "group" WHERE "group" = \'g\''
    with database.transaction() as other:
        other.exec_driver_sql("SET deadlock_timeout = '1min'")
        other.exec_driver_sql(row.format("members"))
        asked = asyncio.create_task(member.ask(join(member.id)))
        await _waiting_for_a_lock(database)
        await asyncio.to_thread(other.exec_driver_sql, row.format("groups"))
    assert error(await asked) == AWAY
    joined = await member.until_answered(lambda: join(member.id))
    assert joined.generation_id == member.generation + 1


async def _waiting_for_a_lock(database: Database) -> None:
    """Until the manager's transaction waits for the test's."""
    async with asyncio.timeout(120):
        while not database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            await asyncio.to_thread(lambda: None)
