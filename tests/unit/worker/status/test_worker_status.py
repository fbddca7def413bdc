from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from protocol.errors import StartupError
from protocol.messages.lag import PartitionLag, TaskLag
from protocol.messages.resources import WorkerResources
from telemetry.logs import LEVEL
from tests.unit.worker.client.servers import Cluster, never_answers, says
from tests.unit.worker.test_daemon import ME, Herd
from worker.costs import Costs
from worker.left_out import LeftOut
from worker.metrics.catalog import CATALOG

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from prometheus_client.samples import Sample


TAKES = WorkerResources(
    heap_bytes=500,
    heap_max_bytes=1000,
    heap_after_gc_bytes=400,
    heap_live_bytes=350,
    gc_ms=2000,
    gc_share=0.1,
    direct_bytes=10,
    python_processes=1,
    python_bytes=100,
    checkpoint_bytes=50,
    checkpoint_free_bytes=5000,
    checkpoint_disk_bytes=9000,
)


class Watched:
    """A worker with a fake engine that has joined, and a client of its endpoint."""

    def __init__(self, herd: Herd, running: asyncio.Future[int], session: ClientSession, url: str) -> None:
        self.herd = herd
        self.running = running
        self.session = session
        self.url = url

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path, headers=headers) as response:
            text = await response.text()
            is_json = response.content_type == "application/json"
            return response.status, msgspec.json.decode(text) if is_json else text

    async def put(self, path: str, body: bytes) -> tuple[int, Any]:
        async with self.session.put(self.url + path, data=body) as response:
            return response.status, await response.json()

    async def samples(self) -> list[Sample]:
        """What a scrape shows now."""
        _, text = await self.get("/metrics")
        return [sample for metric in text_string_to_metric_families(text) for sample in metric.samples]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    cluster = Cluster()
    herd = Herd(await cluster.start())
    herd.settings = msgspec.structs.replace(herd.settings, status_listen="127.0.0.1:0", lag_interval_ms=10)
    one = PartitionLag(topic="t", partition=0, committed=1, end=8, behind=7, behind_ms=2000)
    herd.engine.lags["t1"] = TaskLag(at_ms=1, rows=7, behind_ms=2000, partitions=(one,))
    herd.engine.takes = TAKES
    running = await herd.started()
    url = herd.lines[0].removeprefix("status on ")
    async with ClientSession() as session:
        yield Watched(herd, running, session, url)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    await cluster.close()


async def test_health_says_how_it_stands_with_the_group(watched: Watched) -> None:
    """Always 200 while the loop turns: restarting a worker for its manager's sake helps nobody."""
    status, body = await watched.get("/healthz")
    assert status == 200
    lease_s = body.pop("lease_s")
    assert 0 < lease_s <= 3
    assert body.pop("resources").items() >= {"heap_bytes": 500, "gc_ms": 2000}.items()
    assert body == {
        "error": "NONE",
        "group": "g",
        "state": "Stable",
        "member_id": ME,
        "generation_id": 1,
        "tasks": 1,
    }


async def test_a_scrape_has_every_metric_of_the_catalogue(watched: Watched) -> None:
    """And the figures of the task that runs."""
    watched.herd.engine.query("t1").advance(
        0,
        left_out=LeftOut(1, 0, {"positive": 1}),
        costs=Costs(late_batches=0, late_rows=0, spilled_bytes=0),
        rows=11,
        batch_ms=500,
        lag={"files": 2},
        state={"rows": 1, "bytes": 2, "memory_bytes": 3},
        watermark_ms=1000,
        watermark_lag_ms=0,
    )
    text = ""
    while "sparkherd_task_lag_rows{" not in text:
        _, text = await watched.get("/metrics")
    families = text_string_to_metric_families(text)
    names = {
        f"{each.name}_total" if each.type == "counter" else each.name for each in families if each.samples
    }
    assert {metric.name for metric in CATALOG} - names == set()
    figures = {(s.name, s.labels.get("task")): s.value for s in await watched.samples()}
    assert figures["sparkherd_task_rows_total", "t1"] == 11
    assert figures["sparkherd_worker_losses_total", None] == 0
    assert all(
        s.labels["group"] == "g" for s in await watched.samples() if s.name.startswith("sparkherd_worker")
    )


async def test_losing_all_tasks_at_once_is_counted(watched: Watched) -> None:
    """The manager knows the worker no more: its query is cut."""
    herd = watched.herd
    herd.server.group("join", never_answers)
    herd.server.group("report", says(404, error="UNKNOWN_MEMBER_ID", message="who?"))
    query = herd.engine.query("t1")
    query.advance(0)
    await query.ended()
    losses = [s.value for s in await watched.samples() if s.name == "sparkherd_worker_losses_total"]
    assert losses == [1]


async def test_tasks_are_shown_as_they_run(watched: Watched) -> None:
    """State, token, last batch."""
    watched.herd.engine.query("t1").advance(3, rows=5)
    status, body = await watched.get("/tasks")
    [task] = body["tasks"]
    assert status == 200
    assert (task["task"], task["state"], task["token"], task["batch_id"]) == ("t1", "RUNNING", 4, 3)
    assert task["metrics"] == {"rows": 5}
    assert task["totals"] == {
        "batches": 1,
        "rows": 5,
        "busy_ms": 0,
        "left_out": {"dropped": 0, "quarantined": 0, "reasons": {}},
        "costs": {
            "phases": {"planning": 0, "reading": 0, "writing": 0, "commit": 0},
            "late_batches": None,
            "late_rows": None,
            "spilled_bytes": None,
        },
    }


async def test_the_log_level_can_be_changed_while_it_runs(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is what it was if the request is wrong; the answer names the field."""
    monkeypatch.setattr(LEVEL, "_name", "info")
    monkeypatch.setattr(LEVEL, "_number", 20)
    assert await watched.get("/loglevel") == (200, {"error": "NONE", "level": "info"})
    assert await watched.put("/loglevel", b'{"level": "debug"}') == (200, {"error": "NONE", "level": "debug"})
    for body in (b'{"level": "loud"}', b'{"level": 3}', b"{}", b"loud", b"\xff"):
        status, answer = await watched.put("/loglevel", body)
        assert (status, answer["error"]) == (400, "INVALID_REQUEST")
    assert (await watched.put("/loglevel", b'{"level": "loud"}'))[1]["message"].startswith(
        "level: must be one of"
    )
    assert (await watched.get("/loglevel"))[1]["level"] == "debug"


async def test_a_dump_shows_every_thread_and_task_and_no_values(watched: Watched) -> None:
    """Where each of them is; what they hold may be a secret."""
    status, text = await watched.get("/threads")
    assert status == 200
    assert "thread MainThread" in text
    assert "worker/tasks/exchange/reports.py" in text
    assert "worker/status.py" in text


async def test_what_is_not_there_is_said_as_json(watched: Watched) -> None:
    """As everywhere else."""
    status, body = await watched.get("/nothing")
    assert (status, body["error"]) == (404, "NOT_FOUND")
    status, body = await watched.put("/tasks", b"{}")
    assert (status, body["error"]) == (405, "METHOD_NOT_ALLOWED")
    status, body = await watched.put("/loglevel", b"x" * 5000)
    assert status == 413


async def test_a_page_that_comes_by_another_name_gets_nothing(watched: Watched) -> None:
    """DNS that was made to lead here does not make a site part of this machine."""
    status, body = await watched.get("/tasks", Host="evil.example")
    assert (status, body["error"]) == (403, "FORBIDDEN")
    assert "tasks" not in body


async def test_without_the_setting_nothing_is_served() -> None:
    """The worker says nothing of it."""
    cluster = Cluster()
    herd = Herd(await cluster.start())
    running = await herd.started()
    assert herd.lines == [f"joined g as {ME}"]
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    await cluster.close()


async def test_an_address_of_the_network_is_refused_before_anything_is_started() -> None:
    """One line, no engine, no join."""
    cluster = Cluster()
    herd = Herd(await cluster.start())
    herd.agree()
    herd.settings = msgspec.structs.replace(herd.settings, status_listen="0.0.0.0:0")
    with pytest.raises(StartupError, match="--status-listen"):
        await herd.start()
    assert not herd.engine.is_open
    assert herd.asked() == []
    await cluster.close()
