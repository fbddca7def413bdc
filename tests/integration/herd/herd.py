"""A real manager on a real socket and real workers, all in one event loop; only their engines run nothing."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, web

from manager.app import make_app
from manager.http.front.server import Runner
from manager.storage.sql_storage import SqlStorage
from protocol.messages.groups import Coordinator
from tests.fakes.query_engine import FakeEngine, FakePrepared, FakeQuery
from tests.integration.node import started_node
from worker.daemon import run
from worker.query_engine import ignore_step
from worker.settings import WorkerSettings
from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from protocol.messages.lag import TaskLag
    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from worker.query_engine import Prepared, QuerySpec, UpcomingQuery

PATIENCE_S = 120.0
DEFINITION = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "out"}},
}


class Engine(FakeEngine):
    """Tells the herd of every query that starts or ends."""

    def __init__(self, changed: ChangeSignal) -> None:
        super().__init__()
        self._changed = changed

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> FakeQuery:
        """As the fake does; the first batch is done, so that no death is held against the task."""
        query = await super().start(spec, at, prepared)
        query.advance(0)
        self._changed.notify()
        asyncio.ensure_future(query.ended()).add_done_callback(lambda _: self._changed.notify())
        return query

    async def prepare(self, query: UpcomingQuery) -> FakePrepared | None:
        """As the fake does."""
        prepared = await super().prepare(query)
        self._changed.notify()
        return prepared

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """As the fake does."""
        asyncio.get_running_loop().call_soon(self._changed.notify)
        return await super().quarantine(spec, request, at)


class Herd:
    """One group, its manager and its workers."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        told = {"initial_rebalance_delay_ms": 0, "disconnect_grace_ms": 100} | settings
        self._told = told
        self._storage = SqlStorage(f"sqlite+aiosqlite:///{folder}/m.db")
        self._changed = ChangeSignal()
        self._engines: list[Engine] = []
        self._engine: dict[str, Engine] = {}
        self._worker: dict[str, asyncio.Future[int]] = {}
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        """The manager serves."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        node = await started_node(self._storage, self._url, **self._told)
        self._runtime = node.runtime
        runner = Runner(
            make_app(self._runtime, Coordinator(id="m", url=self._url), 1_000_000, node.directory)
        )
        self._stack.push_async_callback(runner.cleanup)
        self._stack.push_async_callback(node.leave)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        self._session = await self._stack.enter_async_context(ClientSession())

    async def close(self) -> None:
        """Whoever still runs is killed."""
        for name in tuple(self._worker):
            await self.kill(name)
        await self.stop_manager()

    async def stop_manager(self) -> None:
        """In order: what waits is answered, and nobody listens any more."""
        await self._stack.aclose()

    # Workers.

    def hire(self, name: str, **settings: Any) -> None:
        """Start a worker; `settings` are its own."""
        engine = self._engine[name] = Engine(self._changed)
        self._engines.append(engine)
        told = WorkerSettings(
            group="g", manager=(self._url,), client_id=name, **({"session_timeout_ms": 20_000} | settings)
        )
        running = run(told, lambda _, __: engine, lambda _: None)
        self._worker[name] = asyncio.ensure_future(running)

    async def kill(self, name: str) -> None:
        """It is gone, and its connections with it."""
        worker = self._worker.pop(name)
        del self._engine[name]
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker

    async def end_of(self, name: str) -> int:
        """The exit code of a worker that ends by itself."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._worker[name]

    def lags(self, name: str, lags: dict[str, TaskLag]) -> None:
        """How far tasks are behind, by what the engine of a worker measures from now on."""
        self._engine[name].lags = lags

    def engine(self, name: str) -> FakeEngine:
        """A worker's, for a test to say how it fares."""
        return self._engine[name]

    # What there is to see.

    def running(self) -> dict[str, set[str]]:
        """What runs, by worker."""
        return {name: set(engine.running) for name, engine in self._engine.items()}

    def starts(self) -> Counter[str]:
        """How often each task was started, wherever that was."""
        return Counter(query.spec.task for engine in self._engines for query in engine.started)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for starts and ends until `holds`."""
        async with asyncio.timeout(PATIENCE_S):
            await self._changed.until(holds)

    async def until_all_run(self, tasks: Iterable[str], workers: int) -> None:
        """Wait until each of `tasks` runs exactly once, and so many workers run something."""
        wanted = sorted(tasks)

        def hold() -> bool:
            shares = [share for share in self.running().values() if share]
            return len(shares) == workers and sorted(task for share in shares for task in share) == wanted

        await self.until(hold)

    # The admin.

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One admin request about the group."""
        async with self._session.request(method, f"{self._url}/v1/groups/g{path}", json=body) as response:
            return await response.json()

    async def create(self, *tasks: str) -> None:
        """New tasks, asked for one by one."""
        for task in tasks:
            answer = await self.ask("POST", "/tasks", {"task": task, "definition": DEFINITION})
            assert answer["error"] == "NONE"

    async def member(self, name: str) -> str:
        """The member id of a worker."""
        members = (await self.ask("GET", ""))["members"]
        return str(next(m["member_id"] for m in members if m["client_id"] == name))
