"""A run without a manager, on a fake engine: grants, fences, ends and exit codes."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import ClientSession
from structlog.testing import capture_logs

from protocol.errors import StartupError
from protocol.states import Target, TaskState
from tests.fakes.clock import FakeClock
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import settle
from tests.unit.worker.standalone.local_tasks import local
from worker.session_lease import lease_s
from worker.settings import WorkerSettings
from worker.sinks.errors import SinkError
from worker.sinks.fence import FenceRow, Mark
from worker.standalone import local_manager, standalone_worker
from worker.standalone.standalone_worker import run_alone
from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.query_engine import QuerySpec
    from worker.standalone.local_manager import (
        LocalManager,
        LocalTask,
    )

BOUNDED: dict[str, Any] = {"trigger": {"available_now": True}}
SESSION_MS = 1_800_000
LEASE_S = lease_s(SESSION_MS)
NO_RESTART: dict[str, Any] = {"restart": {"max_restarts": 0}}


class Alone:
    """One run, and what it shows."""

    def __init__(self, folder: Path) -> None:
        self.engine = FakeEngine()
        self.manager: LocalManager | None = None
        self._settings = WorkerSettings(
            group="g",
            checkpoint_root=str(folder),
            session_timeout_ms=SESSION_MS,  # a claim that waits for all is never answered
            heartbeat_wait_ms=600_000,
        )
        self._news = asyncio.Event()
        self.running: asyncio.Task[int] | None = None

    def start(self, *tasks: LocalTask, once: bool = False, status_listen: str | None = None) -> None:
        """Run the tasks in the background."""
        settings = msgspec.structs.replace(self._settings, status_listen=status_listen)
        self.running = asyncio.ensure_future(
            run_alone(
                settings,
                tasks,
                once=once,
                show=self._show,
                make_engine=self._make_engine,
                now_ms=lambda: 0,
            )
        )

    async def until(self, **states: str) -> None:
        """Wait until the tasks are in these states; a run that ends meanwhile is told."""
        assert self.running is not None
        while not self._are(states):
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            await asyncio.wait({news, self.running}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            if self.running.done() and not self._are(states):
                raise AssertionError(f"the run ended with {self.running.result()}")

    async def ended(self) -> int:
        """The exit code."""
        assert self.running is not None
        return await self.running

    def _make_engine(self, *given: Any) -> FakeEngine:
        settings, _, inherited = given
        self.warms_up = settings.warm_up_s > 0
        self.inherited = [Path(f"/proc/self/fd/{each}").readlink() for each in inherited]
        return self.engine

    def _are(self, states: dict[str, str]) -> bool:
        now = {} if self.manager is None else self.manager.states
        return all(task in now and now[task].value == state for task, state in states.items())

    def _show(self, manager: LocalManager) -> None:
        self.manager = manager
        self._news.set()


@pytest.fixture
def alone(tmp_path: Path) -> Callable[[], Alone]:
    """Makes runs on the same folder."""
    return lambda: Alone(tmp_path)


def signalled() -> None:
    """Somebody stops the run."""
    signal.raise_signal(signal.SIGTERM)


async def test_nothing_is_warmed_up(alone: Callable[[], Alone]) -> None:
    """Nobody runs the tasks meanwhile, so that it would only have them begin later."""
    run = alone()
    run.start(local("a", **BOUNDED))
    await run.until(a="RUNNING")
    assert not run.warms_up
    run.engine.started[0].end()
    assert await run.ended() == 0


async def test_sigterm_stops_in_order(alone: Callable[[], Alone]) -> None:
    """Every query may finish its batch, then nobody has it; exit code 0, and the engine is closed."""
    run = alone()
    run.start(local("a"), local("b"))
    await run.until(a="RUNNING", b="RUNNING")
    signalled()
    assert await run.ended() == 0
    assert [query.stops for query in run.engine.started] == [[30.0], [30.0]]
    assert not run.engine.is_open
    assert run.manager is not None
    assert set(run.manager.states.values()) == {TaskState.UNASSIGNED}


async def test_tokens_grow_from_run_to_run(alone: Callable[[], Alone]) -> None:
    """The next run's queries come with a higher token."""
    for token in (1, 2, 3):
        run = alone()
        run.start(local("a"))
        await run.until(a="RUNNING")
        assert run.engine.query("a").spec.token == token
        signalled()
        await run.ended()


async def test_a_second_run_is_refused(alone: Callable[[], Alone]) -> None:
    """One started by mistake does not disturb the first, and does not even start its engine."""
    first, second = alone(), alone()
    first.start(local("a"))
    await first.until(a="RUNNING")
    second.start(local("a"))
    with pytest.raises(StartupError, match="another `sparkherd run`"):
        await second.ended()
    assert second.engine.attempts == []
    assert first.engine.running == {"a"}
    signalled()
    assert await first.ended() == 0


@pytest.mark.parametrize(("once", "bounded_only"), [(True, False), (False, True)])
async def test_it_ends_when_nothing_is_left(
    alone: Callable[[], Alone], *, once: bool, bounded_only: bool
) -> None:
    """With `once` unbounded tasks are stopped when the bounded ones are done; without, all must be done."""
    run = alone()
    run.start(local("a", **BOUNDED), local("b", **(BOUNDED if bounded_only else {})), once=once)
    await run.until(a="RUNNING", b="RUNNING")
    run.engine.query("a").end()
    if bounded_only:
        await run.until(a="COMPLETED", b="RUNNING")
        assert run.running is not None
        assert not run.running.done()
        run.engine.query("b").end()
    assert await run.ended() == 0
    assert run.engine.running == set()


async def test_a_failed_task_shows_in_the_exit_code(alone: Callable[[], Alone]) -> None:
    """The others run on to their end, and then it is 1."""
    run = alone()
    run.engine.broken["bad"] = "no such path"
    run.start(local("bad", **BOUNDED, **NO_RESTART), local("good", **BOUNDED), once=True)
    await run.until(bad="FAILED", good="RUNNING")
    run.engine.query("good").end()
    assert await run.ended() == 1


async def test_a_failed_task_shows_after_sigterm_too(alone: Callable[[], Alone]) -> None:
    """That it was stopped in order does not make it well."""
    run = alone()
    run.engine.broken["bad"] = "no such path"
    run.start(local("bad", **NO_RESTART), local("good"))
    await run.until(bad="FAILED", good="RUNNING")
    signalled()
    assert await run.ended() == 1


async def test_a_restart_is_no_end(alone: Callable[[], Alone]) -> None:
    """A bounded task that failed once is tried again, and counted."""
    run = alone()
    run.start(local("a", **BOUNDED), once=True)
    await run.until(a="RUNNING")
    run.engine.query("a").end("a bad moment")
    await run.until(a="RESTARTING")
    assert run.manager is not None
    assert run.manager.restarts == {"a": 1}
    signalled()
    assert await run.ended() == 0


async def test_targets_are_kept_to(alone: Callable[[], Alone]) -> None:
    """What is to be paused or stopped is not run, and nobody waits for it."""
    run = alone()
    run.start(local("p", Target.PAUSED), local("s", Target.STOPPED), local("a", **BOUNDED))
    await run.until(p="PAUSED", s="STOPPED", a="RUNNING")
    run.engine.query("a").end()
    assert await run.ended() == 0
    assert [spec.task for spec in run.engine.attempts] == ["a"]


async def test_the_death_of_the_engine(alone: Callable[[], Alone]) -> None:
    """Exit code 4, as of a worker, whatever the tasks' states."""
    run = alone()
    run.start(local("a"))
    await run.until(a="RUNNING")
    run.engine.die("killed")
    assert await run.ended() == 4


async def test_an_engine_that_does_not_start(alone: Callable[[], Alone]) -> None:
    """One line that says why, for the caller to show; the next run may have the tokens."""
    run = alone()
    run.engine.cannot_open = "no Java"
    run.start(local("a"))
    with pytest.raises(StartupError, match="no Java"):
        await run.ended()
    again = alone()
    again.start(local("a", **BOUNDED))
    await again.until(a="RUNNING")
    again.engine.query("a").end()
    assert await again.ended() == 0


async def test_the_engine_is_given_the_lock(alone: Callable[[], Alone], tmp_path: Path) -> None:
    """It keeps the next run out as long as it lives, whatever becomes of this process."""
    run = alone()
    run.start(local("a", **BOUNDED))
    await run.until(a="RUNNING")
    assert run.inherited == [tmp_path / "g" / "~run.json.lock"]
    run.engine.query("a").end()
    assert await run.ended() == 0


async def test_a_frozen_run_goes_on_with_its_queries(
    alone: Callable[[], Alone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a fence, too: there is nobody who could have been given its tasks meanwhile."""
    clock = FakeClock()
    monkeypatch.setattr(standalone_worker, "SystemClock", lambda: clock)
    run = alone()
    run.start(local("a"))
    await run.until(a="RUNNING")
    await settle()
    clock.freeze(LEASE_S + 1)
    await clock.advance(LEASE_S)
    assert run.engine.query("a").stops == []
    assert len(run.engine.attempts) == 1
    signalled()
    assert await run.ended() == 0


async def test_a_signal_while_the_engine_starts(
    alone: Callable[[], Alone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has run yet, so nothing is to be waited for."""
    opening = asyncio.Event()

    async def never() -> None:
        opening.set()
        await asyncio.Event().wait()

    run = alone()
    monkeypatch.setattr(run.engine, "open", never)
    run.start(local("a"))
    await opening.wait()
    signalled()
    assert await run.ended() == 0


async def test_it_can_be_watched(alone: Callable[[], Alone]) -> None:
    """The endpoint of a worker: health, tasks, metrics; a lease that nobody can end is no number in JSON."""
    run = alone()
    with capture_logs() as logs:
        run.start(local("a"), status_listen="127.0.0.1:0")
        await run.until(a="RUNNING")
    url = next(event["url"] for event in logs if event["event"] == "status is served")
    async with ClientSession(url) as session:
        health = await (await session.get("/healthz")).json()
        assert (health["group"], health["state"], health["lease_s"]) == ("g", "Stable", None)
        tasks = await (await session.get("/tasks")).json()
        assert [(task["task"], task["state"]) for task in tasks["tasks"]] == [("a", "RUNNING")]
        metrics = await (await session.get("/metrics")).text()
        assert 'sparkherd_worker_lease_seconds{group="g"} +Inf' in metrics
    signalled()
    assert await run.ended() == 0


class Sinks:
    """What the sinks of tasks say of their fences."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: dict[str, FenceRow | BaseException] = {}
        self.held: dict[str, threading.Event] = {}
        monkeypatch.setattr(local_manager, "AGAIN", Backoff(0.0, 0.0))
        monkeypatch.setattr(local_manager, "newest_fence", lambda _sink, owner: self._newest(owner.task))

    def _newest(self, task: str) -> FenceRow | None:
        if (gate := self.held.get(task)) is not None:
            gate.wait(60)
        row = self.rows.get(task)
        if isinstance(row, BaseException):
            raise row
        return row


@pytest.fixture
def sinks(monkeypatch: pytest.MonkeyPatch) -> Sinks:
    """Sinks that know nothing yet."""
    return Sinks(monkeypatch)


async def spec_of(run: Alone, task: LocalTask) -> QuerySpec:
    """What the run asks of the engine for its only task."""
    run.start(task)
    await run.until(**{task.name: "RUNNING"})
    signalled()
    await run.ended()
    return run.engine.query(task.name).spec


async def test_whoever_had_the_task_before_is_fenced(alone: Callable[[], Alone], sinks: Sinks) -> None:
    """A herd's worker may still run it: this run comes with a higher token, and goes on after its resets."""
    sinks.rows["a"] = FenceRow(57, resets=2)
    spec = await spec_of(alone(), local("a"))
    assert spec.reset is not None
    assert (spec.token, spec.reset.number) == (58, 2)
    sinks.rows["a"] = FenceRow(58, resets=2)
    assert (await spec_of(alone(), local("a"))).token == 59


async def test_a_run_on_the_wrong_checkpoints_fences_nobody(
    alone: Callable[[], Alone], sinks: Sinks, tmp_path: Path
) -> None:
    """A task with rows in its sink and no checkpoint here is FAILED under no token; the others run."""
    sinks.rows["lost"] = FenceRow(57, last=Mark("c1", 12))
    sinks.rows["kept"] = FenceRow(57, last=Mark("c2", 3), resets=1)
    (tmp_path / "g" / "kept~1").mkdir(parents=True)
    (tmp_path / "g" / "kept~1" / "metadata").touch()
    run = alone()
    run.start(local("lost"), local("kept", **BOUNDED))
    await run.until(lost="FAILED", kept="RUNNING")
    assert run.manager is not None
    assert "up to batch 12" in (run.manager.reports["lost"].cause or "")
    assert [(spec.task, spec.token) for spec in run.engine.attempts] == [("kept", 58)]
    assert "lost" not in (tmp_path / "g" / "~run.json").read_text()
    run.engine.query("kept").end()
    assert await run.ended() == 1


@pytest.mark.parametrize(
    "error", [SinkError("no route to host"), LookupError("no host"), SystemExit(3)], ids=repr
)
async def test_a_sink_that_cannot_be_asked(
    alone: Callable[[], Alone], sinks: Sinks, error: BaseException
) -> None:
    """The start of the query will tell what is wrong with it; the run goes on."""
    sinks.rows["a"] = error
    assert (await spec_of(alone(), local("a"))).token == 1


async def test_a_slow_sink_delays_no_other_task(alone: Callable[[], Alone], sinks: Sinks) -> None:
    """What can be granted is granted; the slow one comes when its sink has answered."""
    sinks.held["slow"] = threading.Event()
    run = alone()
    run.start(local("slow", **BOUNDED), local("quick", **BOUNDED))
    await run.until(quick="RUNNING")
    assert run.engine.running == {"quick"}
    run.engine.query("quick").end()
    await run.until(quick="COMPLETED")
    await settle()
    assert run.running is not None
    assert not run.running.done()
    sinks.held["slow"].set()
    await run.until(slow="RUNNING")
    run.engine.query("slow").end()
    assert await run.ended() == 0
