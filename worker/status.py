"""The worker's own endpoint: it asks nobody who they are, so on this machine only."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import traceback
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from aiohttp import web

from configuration.listener import listen
from telemetry.logs import LEVEL
from worker.metrics.meter import WorkerReader
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from telemetry.metrics import Instruments
    from worker.metrics.meter import WorkerView

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

Written = TypeVar("Written")

JSON = "application/json"
MAX_BODY_BYTES = 1024
SHUTDOWN_S = 1.0


class LevelRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be logged from now on."""

    level: str


class StatusHandlers:
    """Shows one worker; `view` is what it is doing now.

    What grows with the number of partitions is written in a thread, one at a time: a thousand tasks with 200
    each are 20 MB of metrics, for which heartbeats would wait two seconds.
    """

    def __init__(self, view: Callable[[], WorkerView], instruments: Instruments) -> None:
        self._view = view
        self._instruments = instruments
        self._writing = asyncio.Lock()

    def app(self) -> web.Application:
        """Every route."""
        app = web.Application(middlewares=[_only_local], client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                web.get("/healthz", self.health),
                web.get("/metrics", self.metrics),
                web.get("/tasks", self.tasks),
                web.get("/loglevel", self.level),
                web.put("/loglevel", self.set_level),
                web.get("/threads", self.threads),
            ]
        )
        return app

    async def health(self, _: web.Request) -> web.Response:
        """The event loop turns: 200, however it stands with the group, which the body says.

        A worker that cannot reach its manager must not be restarted for it.
        """
        worker = self._view()
        return _json(
            group=worker.group,
            state=worker.state.value,
            member_id=worker.member_id,
            generation_id=worker.generation,
            lease_s=round(worker.lease_s, 3),
            tasks=len(worker.tasks),
            resources=worker.resources,
        )

    async def metrics(self, request: web.Request) -> web.Response:
        """Prometheus's text."""
        accept = request.headers.get("Accept", "")
        body, content_type = await self._written(
            lambda worker: self._instruments.exposition(accept, WorkerReader(worker))
        )
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def tasks(self, _: web.Request) -> web.Response:
        """What runs here."""
        return web.Response(body=await self._written(_tasks), content_type=JSON)

    async def _written(self, write: Callable[[WorkerView], Written]) -> Written:
        """What `write` makes of the worker as it is now, in a thread."""
        async with self._writing:
            worker = self._view()
            return await asyncio.wrap_future(in_thread("status", lambda: write(worker)))

    async def level(self, _: web.Request) -> web.Response:
        """The least important events that are logged."""
        return _json(level=LEVEL.name)

    async def set_level(self, request: web.Request) -> web.Response:
        """`{"level": "debug"}`, until the worker ends."""
        try:
            LEVEL.set(msgspec.json.decode(await request.read(), type=LevelRequest).level)
        except (ValueError, UnicodeDecodeError) as error:
            return _refuse(400, "INVALID_REQUEST", str(error))
        return _json(level=LEVEL.name)

    async def threads(self, _: web.Request) -> web.Response:
        """Where every thread and task is."""
        return web.Response(text=dump_stacks())


@asynccontextmanager
async def serving(address: str | None, handlers: StatusHandlers) -> AsyncIterator[str | None]:
    """Serve at `HOST:PORT` and yield the URL; None serves nothing.

    Raises:
        StartupError: the address is none it may have, or cannot be had.
    """
    if address is None:
        yield None
        return
    listener = listen("--status-listen", address, loopback_only=True)
    runner = web.AppRunner(handlers.app(), access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield f"http://{address.rsplit(':', 1)[0]}:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()
        listener.close()


@web.middleware
async def _only_local(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No page of another site gets at it by a name of its own that leads here; errors are JSON."""
    if not is_local(request.headers.get("Host")):
        return _refuse(403, "FORBIDDEN", "ask for 127.0.0.1 or localhost: this endpoint is for this machine")
    try:
        response = await handler(request)
    except web.HTTPException as error:
        return _refuse(error.status, (error.reason or "").upper().replace(" ", "_"), error.text or "")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def is_local(host: str | None) -> bool:
    """Whether a request's `Host` names this machine: a page of elsewhere may have its own name lead here."""
    name = (host or "").rsplit(":", 1)[0] if not (host or "").endswith("]") else (host or "")
    name = name.strip("[]")
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _tasks(worker: WorkerView) -> bytes:
    """One by one: while Python writes JSON, no other thread gets anywhere."""
    tasks = (msgspec.json.encode(view) for view in sorted(worker.tasks, key=lambda each: each.task))
    return b'{"error":"NONE","tasks":[' + b",".join(tasks) + b"]}"


def _json(**fields: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode({"error": "NONE", **fields}), content_type=JSON)


def _refuse(status: int, code: str, message: str) -> web.Response:
    body = msgspec.json.encode({"error": code, "message": message, "retriable": False})
    return web.Response(body=body, status=status, content_type=JSON)


def dump_stacks() -> str:
    """The stack of every thread and task, without the values of variables. To be called in the event loop."""
    parts = [_of_thread(thread) for thread in threading.enumerate()]
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return "\n".join([*parts, *(_of_task(task) for task in tasks)])


def _of_thread(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the documented way to ask
    stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (not started)\n"
    return f"thread {thread.name}{' (daemon)' if thread.daemon else ''}\n{stack}"


def _of_task(task: asyncio.Task[object]) -> str:
    told = io.StringIO()
    task.print_stack(file=told)
    return f"task {task.get_name()}\n{told.getvalue()}"
