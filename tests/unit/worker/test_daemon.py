from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from protocol.connectors import Formats
from protocol.errors import StartupError
from tests.fakes.clock import FakeClock
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import eventually
from tests.integration.herd.rules import STOP_THE_WORLD
from tests.unit.worker.client.servers import Cluster, Server, hangs_up, never_answers, says
from worker import daemon
from worker.daemon import run
from worker.query_engine import SparkKind
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ME = "worker-1"
DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}


class Herd:
    """One manager over real HTTP, and one worker of this process with a fake engine."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.engine = FakeEngine()
        self.lines: list[str] = []
        self.may_write: list[Callable[[], bool]] = []
        self.heard = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.ends: asyncio.Queue[int] = asyncio.Queue()
        self.settings = WorkerSettings(group="g", manager=(server.url,), session_timeout_ms=3000)

    def agree(self) -> None:
        """The manager lets the worker in, gives it t1, and agrees to everything else."""
        self.server.coordinates()
        joined = {"generation_id": 1, "protocol_type": "sparkherd", "protocol_name": "sticky"}
        self.server.group("join", says(200, **joined, leader_id="worker-0", member_id=ME))
        synced = {"protocol_type": "sparkherd", "protocol_name": "sticky"}
        self.server.group("sync", says(200, **synced, assignment={"tasks": ["t1"]}))
        self.server.group("heartbeat", never_answers)
        grant = {"task": "t1", "token": 4, "target": "RUNNING", "definition": DEFINITION}
        self.server.group(
            "claim", says(200, granted=[{**grant, "definition_version": 1, "restart_count": 0}])
        )
        self.server.group("release", says(200, tasks={"t1": "NONE"}))
        self.server.group("leave", says(200, members=[]))
        self.server.group("report", self._report)

    async def _report(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["tasks"][0]["state"] == "RUNNING":
            self.heard.set()
        return web.json_response({"error": "NONE", "tasks": {}})

    def start(self) -> asyncio.Future[int]:
        """The worker, in the background."""
        return asyncio.ensure_future(
            run(self.settings, self._make_engine, self.lines.append, self._end_process)
        )

    async def started(self) -> asyncio.Future[int]:
        """The worker, once the manager has heard that its task runs."""
        self.agree()
        running = self.start()
        await self.heard.wait()
        return running

    def _end_process(self, code: int) -> None:
        """Called from a thread."""
        self.loop.call_soon_threadsafe(self.ends.put_nowait, code)

    def _make_engine(self, _: WorkerSettings, may_write: Callable[[], bool]) -> FakeEngine:
        self.may_write.append(may_write)
        return self.engine

    def asked(self) -> list[str]:
        """The last word of each request's path, as it came in."""
        return [path.rsplit("/", 1)[-1] for path, _ in self.server.asked]


@pytest.fixture
async def herd() -> AsyncIterator[Herd]:
    """A manager that answers nothing yet, and a worker that has not started."""
    cluster = Cluster()
    yield Herd(await cluster.start())
    await cluster.close()


async def test_a_worker_joins_says_so_runs_its_task_and_leaves_in_order(herd: Herd) -> None:
    """SIGTERM: stop, release, leave, 0."""
    running = await herd.started()
    assert herd.lines == [f"joined g as {ME}"]
    query = herd.engine.query("t1")
    assert (query.spec.group, query.spec.token) == ("g", 4)
    assert herd.may_write[0]()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert query.stops == [30.0]
    assert herd.asked()[-2:] == ["release", "leave"]
    assert herd.server.bodies("release")[-1]["tasks"] == {"t1": 4}
    assert not herd.engine.is_open


async def test_a_worker_that_is_told_to_stop_has_its_tasks_moved_away_first(herd: Herd) -> None:
    """It is drained, rejoins, is given nothing, lets go of its task, and leaves when it owns nothing."""
    drained = asyncio.Event()

    async def drain(_: web.Request) -> web.StreamResponse:
        synced = {"protocol_type": "sparkherd", "protocol_name": "sticky"}
        herd.server.group("sync", says(200, **synced, assignment={"tasks": []}))
        drained.set()
        return web.json_response({"error": "NONE"}, status=202)

    async def beat(_: web.Request) -> web.StreamResponse:
        await drained.wait()
        herd.server.group("heartbeat", never_answers)
        return web.json_response(
            {"error": "REBALANCE_IN_PROGRESS", "message": "", "retriable": True}, status=409
        )

    herd.agree()
    herd.server.group("heartbeat", beat)
    herd.server.group(f"members/{ME}/drain", drain)
    running = herd.start()
    await herd.heard.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    orders = [word for word in herd.asked() if word in {"drain", "join", "sync", "release", "leave"}]
    assert orders == ["join", "sync", "drain", "join", "sync", "release", "leave"]


@pytest.mark.parametrize(("assignors", "paces"), [(("sticky",), True), (("sticky", STOP_THE_WORLD), False)])
async def test_who_stops_everything_to_join_does_not_ask_for_more(
    herd: Herd,
    assignors: tuple[str, ...],
    paces: bool,  # noqa: FBT001 - a case's
) -> None:
    """It would stop all its tasks for each few that come."""
    herd.settings = msgspec.structs.replace(herd.settings, assignor=assignors)
    running = await herd.started()
    join = herd.server.bodies("join")[0]
    assert [each["metadata"]["paces"] for each in join["protocols"]] == [paces] * len(assignors)
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 0


async def test_the_join_tells_what_the_settings_say(herd: Herd) -> None:
    """Assignors in order, capacity, labels; that it can settle tasks, and what its Spark has."""
    herd.engine.kind = SparkKind("4.1.4", Formats(("kafka",)))
    herd.settings = WorkerSettings(
        group="g",
        manager=(herd.server.url,),
        client_id="me",
        assignor=("roundrobin", "sticky"),
        capacity=2.5,
        max_tasks=7,
        label={"zone": "a"},
    )
    running = await herd.started()
    join = herd.server.bodies("join")[0]
    assert join["client_id"] == "me"
    assert [protocol["name"] for protocol in join["protocols"]] == ["roundrobin", "sticky"]
    assert join["protocols"][0]["metadata"] == {
        "owned": {},
        "claiming": [],
        "starting": [],
        "capacity": 2.5,
        "max_tasks": 7,
        "labels": {"zone": "a"},
        "url": None,
        "tasks_revision": 0,
        "settles": True,
        "homes": True,
        "offer_pages": True,
        "spark": "4.1.4",
        "formats": {"names": ["kafka"], "looked_for": None},
        "checks": True,
        "quarantine": True,
        "paces": True,
    }
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 0


async def test_a_dead_engine_ends_the_worker(herd: Herd) -> None:
    """It leaves at once, without a release, so that its tasks go elsewhere; exit code 4."""
    running = await herd.started()
    herd.engine.die("the JVM exited with code 137")
    assert await running == 4
    assert herd.asked()[-1] == "leave"
    assert "release" not in herd.asked()


async def test_a_fenced_worker_ends(herd: Herd) -> None:
    """Exit code 3, every query stopped at once, no leave: the place is another process's."""
    herd.agree()
    herd.server.group("claim", says(409, error="FENCED_INSTANCE_ID", message="replaced"))
    assert await herd.start() == 3
    assert "leave" not in herd.asked()


async def test_a_join_refused_for_good_ends_the_worker(herd: Herd) -> None:
    """Exit code 5 and one line that says what to change."""
    herd.agree()
    why = "session_timeout_ms 3000 is not within 6000 and 1800000"
    herd.server.group("join", says(400, error="INVALID_SESSION_TIMEOUT", message=why))
    with capture_logs() as logs:
        assert await herd.start() == 5
    assert f"INVALID_SESSION_TIMEOUT: {why}" in [entry["event"] for entry in logs]
    assert herd.lines == []


async def test_an_engine_that_cannot_start_is_one_line(herd: Herd) -> None:
    """A usage error for whoever started the worker; the group never hears of it."""
    herd.agree()
    herd.engine.cannot_open = "Java 17 or newer is needed, and none was found"
    with pytest.raises(StartupError, match="Java 17"):
        await herd.start()
    assert "join" not in herd.asked()


async def test_an_unknown_assignor_is_one_line(herd: Herd) -> None:
    """Before anything is started."""
    herd.settings = WorkerSettings(group="g", assignor=("no-such",))
    with pytest.raises(StartupError, match="no-such"):
        await herd.start()
    assert herd.may_write == []


async def test_a_bug_comes_out_as_itself(herd: Herd) -> None:
    """A daemon does not live on with a part of it dead."""
    herd.agree()

    async def broken() -> None:
        raise ZeroDivisionError

    herd.engine.open = broken  # type: ignore[method-assign]  # the simplest bug there is
    with pytest.raises(ZeroDivisionError):
        await herd.start()


async def test_a_worker_waits_for_its_manager_and_says_so_once(herd: Herd) -> None:
    """One line that names the URL, no trace, however often it tries; then it joins as if nothing had been."""
    herd.agree()
    coordinator, tries = herd.server.answers["/v1/coordinator"], 0

    async def away_at_first(request: web.Request) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        return await (coordinator if tries > 6 else hangs_up)(request)

    herd.server.answers["/v1/coordinator"] = away_at_first
    with capture_logs() as logs:
        running = herd.start()
        await herd.heard.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert [entry["why"] for entry in logs if entry["log_level"] == "warning"] == [
        f"no manager answers: {herd.server.url}: the connection was closed before an answer came"
    ]


async def test_a_signal_ends_a_worker_that_waits_for_its_manager(herd: Herd) -> None:
    """There is nothing to leave."""
    looked = asyncio.Event()

    async def away(request: web.Request) -> web.StreamResponse:
        looked.set()
        return await hangs_up(request)

    herd.server.answers["/v1/coordinator"] = away
    running = herd.start()
    await looked.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def test_a_signal_ends_a_worker_whose_engine_is_still_on_its_way_up(herd: Herd) -> None:
    """Nobody waits for Spark to be told to stop."""
    opening = asyncio.Event()

    async def slow() -> None:
        opening.set()
        await asyncio.get_running_loop().create_future()

    herd.engine.open = slow  # type: ignore[method-assign]  # an engine that takes for ever
    running = herd.start()
    await opening.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def test_the_second_signal_ends_the_worker_at_once(herd: Herd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the batch in flight."""
    herd.engine.slow.add("t1")
    running = await herd.started()
    exits: asyncio.Queue[int] = asyncio.Queue()
    monkeypatch.setattr(os, "_exit", exits.put_nowait)
    os.kill(os.getpid(), signal.SIGTERM)
    await herd.engine.query("t1").stopping.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await exits.get() == 128 + signal.SIGTERM
    herd.engine.query("t1").finish_batch()
    assert await running == 0


async def test_a_silent_manager_costs_the_tasks_when_the_lease_runs_out(herd: Herd) -> None:
    """The worker stops its queries before its tasks can be anybody else's."""
    herd.settings = msgspec.structs.replace(herd.settings, session_timeout_ms=300, heartbeat_wait_ms=100)
    running = await herd.started()
    for operation in ("heartbeat", "report", "join", "claim"):
        herd.server.group(operation, never_answers)
    query = herd.engine.query("t1")
    assert await query.ended() is None
    assert query.stops == [0.0]
    assert not herd.may_write[0]()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def never_over(herd: Herd) -> asyncio.Future[int]:
    """The worker, whose manager falls silent, and whose query without a fence does not stop."""
    herd.settings = msgspec.structs.replace(herd.settings, session_timeout_ms=300, heartbeat_wait_ms=100)
    running = await herd.started()
    herd.engine.query("t1").hold_stops()
    for operation in ("heartbeat", "report", "join", "claim"):
        herd.server.group(operation, never_answers)
    return running


async def end(herd: Herd, running: asyncio.Future[int]) -> None:
    """The process has not ended, for it is the test's."""
    herd.engine.query("t1").let_stop()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def test_a_worker_ends_its_engine_and_itself_before_a_query_meets_the_next_owner_s(herd: Herd) -> None:
    """At once, and as it does when the engine is lost; it says which task it was for."""
    with capture_logs() as logs:
        running = await never_over(herd)
        assert await herd.ends.get() == 4
    assert herd.engine.kills == 1
    assert [line["tasks"] for line in logs if line["log_level"] == "critical"] == [("t1",)]
    await end(herd, running)


async def test_a_worker_does_not_end_for_an_engine_that_goes_on_without_it(herd: Herd) -> None:
    """A Spark Connect server runs what others have there, too: all it can do is to say so."""
    herd.engine.is_own = False
    with capture_logs() as logs:
        running = await never_over(herd)
        await eventually(lambda: any("may write" in line["event"] for line in logs), "it is told")
    assert herd.ends.empty()
    await end(herd, running)


async def test_a_thawed_worker_stops_everything_before_it_does_anything_else(
    herd: Herd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen for longer than its lease, it finds news in its socket: it stops its queries, and joins anew."""
    clock = FakeClock()
    held, thawed, joins = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer_late(_: web.Request) -> web.StreamResponse:
        held.set()
        await thawed.wait()
        return web.json_response({"error": "NONE", "tasks_revision": 9})

    async def note(request: web.Request) -> web.StreamResponse:
        joins.set()
        return await never_answers(request)

    monkeypatch.setattr(daemon, "SystemClock", lambda: clock)
    herd.agree()
    herd.server.group("heartbeat", answer_late)
    running = herd.start()
    await herd.heard.wait()
    await held.wait()
    query, before = herd.engine.query("t1"), len(herd.asked())
    herd.server.group("join", note)
    clock.freeze(herd.settings.session_timeout_ms / 1000)
    thawed.set()
    await query.ended()
    assert query.stops == [0.0]
    await joins.wait()
    assert herd.asked()[before:] == ["join"]
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
