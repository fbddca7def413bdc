"""What is large is written beside the event loop, which goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import ClientSession

from protocol.messages.lag import PartitionLag, TaskLag
from protocol.states import TaskState
from telemetry.metrics import Metric, gauges_as_read
from worker.membership.states import MemberState
from worker.metrics.meter import Meter, WorkerView
from worker.query_engine import Totals
from worker.status import StatusHandlers, serving
from worker.tasks.task_status import TaskSnapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

LAG = TaskLag(
    at_ms=1,
    rows=9,
    partitions=(PartitionLag(topic="orders", partition=3, committed=0, end=9, behind=9),),
)
SNAPSHOT = TaskSnapshot(
    task="t1",
    token=3,
    state=TaskState.RUNNING,
    cause=None,
    batch_id=8,
    metrics={"batch_ms": 250},
    totals=Totals(9, 900, 2000),
    restarts=1,
    outages=0,
    idle_s=4.0,
    has_work=True,
    lag=LAG,
)


PARTITION_SERIES = 'sparkherd_task_partition_lag_rows{group="g",partition="3",task="t1",topic="orders"}'


class Held:
    """What is written waits until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.at_once = 0
        self.most_at_once = 0

    def hold(self) -> None:
        """Called where something is written."""
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.entered.set()
        assert self.go_on.wait(120)
        self.at_once -= 1


@pytest.fixture
def held() -> Held:
    """Who holds whoever writes metrics."""
    return Held()


@pytest.fixture
async def endpoint(held: Held, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Of a worker with one task."""
    meter = Meter("g")
    write = meter.instruments.exposition

    def written(*asked: Any) -> tuple[bytes, str]:
        held.hold()
        return write(*asked)

    monkeypatch.setattr(meter.instruments, "exposition", written)
    view = WorkerView("g", "m", 7, MemberState.STABLE, 8.5, (SNAPSHOT,))
    async with serving("127.0.0.1:0", StatusHandlers(lambda: view, meter.instruments)) as url:
        assert url is not None
        yield url


async def test_the_worker_goes_on_while_its_metrics_are_written(endpoint: str, held: Held) -> None:
    """Twenty megabytes of them take two seconds; two scrapes at the same time are written in turn."""
    async with ClientSession() as session:
        scrapes = [asyncio.ensure_future(text(session, f"{endpoint}/metrics")) for _ in range(2)]
        await asyncio.to_thread(held.entered.wait, 120)
        assert '"error":"NONE"' in await text(session, f"{endpoint}/healthz")
        held.go_on.set()
        for written in await asyncio.gather(*scrapes):
            assert f"{PARTITION_SERIES} 9" in written
    assert held.most_at_once == 1


async def text(session: ClientSession, url: str) -> str:
    """What is answered."""
    async with session.get(url) as response:
        return await response.text()


async def test_tasks_are_written_in_a_thread_one_by_one(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that is known of each."""
    threads: list[str] = []
    encode = msgspec.json.encode

    def noted(what: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return encode(what)

    monkeypatch.setattr("worker.status.msgspec.json.encode", noted)
    async with ClientSession() as session:
        told = msgspec.json.decode(await text(session, f"{endpoint}/tasks"))
    [task] = told["tasks"]
    assert (task["task"], task["state"], task["totals"]["rows"]) == ("t1", "RUNNING", 900)
    assert task["lag"]["partitions"][0]["behind"] == 9
    assert threads == ["status"]


def test_values_are_read_as_they_are_written() -> None:
    """None is made before the one before it was taken."""
    made: list[int] = []

    def values() -> Iterator[tuple[tuple[str, ...], float]]:
        for number in range(3):
            made.append(number)
            yield (str(number),), number

    family = gauges_as_read(Metric("sparkherd_numbers", "gauge", "Numbers.", ("number",)), values())
    samples = iter(family.samples)
    assert made == []
    first = next(samples)
    assert (first.name, first.labels, first.value, made) == ("sparkherd_numbers", {"number": "0"}, 0, [0])
