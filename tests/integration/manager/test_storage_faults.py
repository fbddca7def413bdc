"""Real storage with real faults: what waits is answered, nothing told is lost, and it goes on by itself."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import CreateTask, DescribeGroup, NewDefinition
from manager.runtime import backoff, writer
from manager.runtime.clock import read_clocks
from manager.runtime.runtime import Runtime
from manager.settings import GroupSettings
from manager.storage import sql
from manager.storage.base import StorageError
from manager.storage.sql import SqlStorage
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    MemberAssignment,
    Protocol,
    SyncRequest,
)
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit
from protocol.messages.ownership import ClaimRequest
from protocol.states import Target
from tests.fakes.turns import settle, turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from manager.core.rows import Change
    from protocol.messages.base import Request

BUSY_S = 0.05
AWAY = "COORDINATOR_NOT_AVAILABLE"
PADDING = encode_opaque("x" * 30_000)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a database waits for it a twentieth of a second."""
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", BUSY_S)

    def set_up(connection: Any, record: object) -> None:
        plain(connection, record)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
        cursor.close()

    plain = sql._set_up_sqlite
    monkeypatch.setattr(sql, "_set_up_sqlite", set_up)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
async def runtime(path: Path) -> AsyncIterator[Runtime]:
    async with serving(SqlStorage(f"sqlite+aiosqlite:///{path}")) as started:
        yield started


@asynccontextmanager
async def serving(storage: SqlStorage) -> AsyncIterator[Runtime]:
    runtime = Runtime(GroupSettings(initial_rebalance_delay_ms=0), storage)
    await runtime.start()
    yield runtime
    await runtime.stop()


def locked(path: Path) -> Iterator[None]:
    """Another connection holds the database for itself, longer than anybody waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def removed(path: Path) -> Iterator[None]:
    """The file is moved away while it is in use."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    yield
    aside.rename(path)


def full(path: Path) -> Iterator[None]:
    """The kernel lets no file grow any more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = path.with_name(f"{path.name}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


FAULTS = {"locked": locked, "removed": removed, "full": full}


def join(member_id: str = "") -> JoinRequest:
    return JoinRequest(
        member_id=member_id,
        session_timeout_ms=1_000_000,
        rebalance_timeout_ms=60_000,
        protocol_type="sparkherd",
        protocols=(Protocol("sticky", PADDING),),
        require_member_id=False,
    )


def task(name: str) -> CreateTask:
    definition = NewDefinition(document=PADDING, weight=1.0, worker=None, labels={})
    return CreateTask(task=name, definition=definition, target=Target.RUNNING)


def ready(runtime: Runtime) -> bool:
    return runtime.is_ready


def code(outcome: Any) -> str:
    return outcome.code.name if isinstance(outcome, Failure) else str(outcome.error)


class Member:
    """One that brought the group to Stable; its next step is whichever request needs the storage."""

    def __init__(self, runtime: Runtime, group: str) -> None:
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
        async with asyncio.timeout(30):
            while code(outcome := await self.ask(request())) == AWAY:
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


async def durable(runtime: Runtime, group: str) -> tuple[Any, Any]:
    """What the group is in memory, and what a manager that starts now would find."""
    living = runtime._coordinator.group(group)
    stored = (await runtime._storage.load([group])).get(group, [])
    fresh = Runtime(GroupSettings(), runtime._storage)._coordinator
    fresh.restore(group, stored, read_clocks())
    restored = fresh.group(group)
    return (living.durable() if living else {}), (restored.durable() if restored else {})


@pytest.mark.parametrize("step", ["join", "claim", "leave", "commit", "create"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_the_middle_is_survived(runtime: Runtime, path: Path, fault: str, step: str) -> None:
    """The waiting hear COORDINATOR_NOT_AVAILABLE, others go on, and what follows needs no restart."""
    member, other = Member(runtime, "g"), Member(runtime, "other")
    await member.settle()
    await other.settle()
    trouble = FAULTS[fault](path)
    next(trouble)
    assert code(await member.ask(member.steps()[step])) == AWAY
    assert not ready(runtime)
    beat = HeartbeatRequest(member_id=other.id, generation_id=other.generation)
    assert code(await other.ask(beat)) == "NONE"
    next(trouble, None)
    described = await member.until_answered(DescribeGroup)
    assert described.generation_id == member.generation
    assert [m.member_id for m in described.members] == [member.id]
    outcome = await member.until_answered(lambda: member.steps()[step])
    assert code(outcome) == "NONE"
    if step == "join":
        assert outcome.generation_id == member.generation + 1
    assert ready(runtime)
    living, stored = await durable(runtime, "g")
    assert living == stored


@pytest.fixture
async def sync_parked(runtime: Runtime) -> Member:
    """In AwaitingSync."""
    member = Member(runtime, "g")
    await member.settle()
    joined = await member.ask(join(member.id))
    member.generation = joined.generation_id
    return member


async def test_an_assignment_that_could_not_be_stored_was_never_made(
    runtime: Runtime, path: Path, sync_parked: Member
) -> None:
    """The generation stays told: after the fault the group gathers again under the next one."""
    trouble = locked(path)
    next(trouble)
    assert code(await sync_parked.ask(sync_parked.sync())) == AWAY
    next(trouble, None)
    joined = await sync_parked.until_answered(lambda: join(sync_parked.id))
    assert joined.generation_id == sync_parked.generation + 1
    living, stored = await durable(runtime, "g")
    assert living == stored


class Deaf(SqlStorage):
    """Commits, and then loses the answer."""

    is_deaf = False

    async def commit(self, changes: Sequence[Change]) -> None:
        await super().commit(changes)
        if self.is_deaf:
            self.is_deaf = False
            raise StorageError("server closed the connection unexpectedly")


async def test_a_commit_of_unknown_outcome_is_read_again(path: Path) -> None:
    """It was durable: its generation is counted as told, though nobody heard of it."""
    storage = Deaf(f"sqlite+aiosqlite:///{path}")
    async with serving(storage) as runtime:
        member = Member(runtime, "g")
        await member.settle()
        storage.is_deaf = True
        assert code(await member.ask(join(member.id))) == AWAY
        joined = await member.until_answered(lambda: join(member.id))
        assert joined.generation_id == member.generation + 2
        living, stored = await durable(runtime, "g")
        assert living == stored


async def test_while_the_storage_is_away_everything_that_needs_it_is_refused_at_once(
    runtime: Runtime, path: Path
) -> None:
    """However many ask, nothing is kept of them, and the storage is looked for ever more rarely."""
    member = Member(runtime, "g")
    await member.settle()
    trouble = locked(path)
    next(trouble)
    assert code(await member.ask(join(member.id))) == AWAY
    inner = runtime._writer
    async with asyncio.timeout(30):
        while not inner._is_away:
            await asyncio.to_thread(lambda: None)
    for n in range(200):
        asked = asyncio.create_task(runtime.ask(f"new{n}", join()))
        await settle(10)
        assert asked.done(), "it waited for something"
        assert code(asked.result()) == AWAY
    assert not inner._commits.has_work
    assert inner._commits.waiting() == []
    assert runtime.parked == 0
    assert not ready(runtime)
    next(trouble, None)
    assert code(await member.until_answered(lambda: join(member.id))) == "NONE"
    assert code(await Member(runtime, "new7").until_answered(join)) == "NONE"


async def test_a_row_that_cannot_be_stored_ends_nothing(runtime: Runtime) -> None:
    """Not even one that the driver itself chokes on: its group is read again, the writer goes on."""
    member = Member(runtime, "g")
    await member.settle()
    bad = NewDefinition(document=PADDING, weight=1.0, worker="\ud800", labels={})
    assert code(await member.ask(CreateTask(task="bad", definition=bad, target=Target.RUNNING))) == AWAY
    assert code(await member.until_answered(lambda: task("good"))) == "NONE"


class Hanging(SqlStorage):
    """Says neither yes nor no, until it is let go."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit(self, changes: Sequence[Change]) -> None:
        await self.gate.wait()
        await super().commit(changes)


async def test_nobody_waits_for_ever_for_a_storage_that_hangs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who wait are answered, who comes later is answered at once; what was stored in the end counts."""
    storage = Hanging(f"sqlite+aiosqlite:///{path}")
    async with serving(storage) as runtime:
        member = Member(runtime, "g")
        await member.settle()
        monkeypatch.setattr(writer, "STALL_S", BUSY_S)
        storage.gate.clear()
        assert code(await member.ask(join(member.id))) == AWAY
        assert code(await member.ask(join(member.id))) == AWAY
        assert code(await runtime.ask("new", join())) == AWAY
        assert not ready(runtime)
        storage.gate.set()
        joined = await member.until_answered(lambda: join(member.id))
        assert joined.generation_id > member.generation
        assert ready(runtime)


async def test_stopping_does_not_wait_for_a_storage_that_hangs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting are answered, and the process may end."""
    storage = Hanging(f"sqlite+aiosqlite:///{path}")
    async with serving(storage) as runtime:
        member = Member(runtime, "g")
        await member.settle()
        storage.gate.clear()
        asked = asyncio.create_task(member.ask(join(member.id)))
        await turn()
        monkeypatch.setattr(writer, "STALL_S", BUSY_S)
        await runtime.stop()
        assert code(await asked) == AWAY
