from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import ClientSession, web
from prometheus_client.parser import text_string_to_metric_families

from manager.app import make_app
from manager.core.coordinator import RULES
from manager.http.front.server import Runner
from manager.metrics.catalog import CATALOG
from manager.settings import ManagerSettings
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.sql import SqlStorage
from protocol.messages.base import NULL
from protocol.messages.groups import Coordinator
from protocol.messages.membership import HeartbeatRequest, JoinRequest, Protocol, SyncRequest
from tests.fakes.turns import eventually
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from manager.core.rows import Record
    from manager.runtime.coordinator_runtime import CoordinatorRuntime

JOIN = JoinRequest(
    member_id="",
    session_timeout_ms=1_000_000,
    rebalance_timeout_ms=60_000,
    protocol_type="test",
    protocols=(Protocol("range", NULL),),
    require_member_id=False,
)


class Fragile(SqlStorage):
    """A real storage that fails when the test says so."""

    is_broken = False

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        if self.is_broken:
            raise StorageError("disk full")
        await super().commit(changes, fence)

    async def probe(self) -> None:
        if self.is_broken:
            raise StorageError("disk full")
        await super().probe()


class Served:
    """A manager over HTTP; `value` is a sample of its last scrape."""

    def __init__(
        self, runtime: CoordinatorRuntime, storage: Fragile, session: ClientSession, url: str
    ) -> None:
        self.runtime = runtime
        self.storage = storage
        self.session = session
        self.url = url
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.names: set[str] = set()

    async def scrape(self) -> str:
        """Ask as Prometheus does."""
        async with self.session.get(self.url + "/metrics") as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain; version=")
            text = await response.text()
        found = list(text_string_to_metric_families(text))
        self.names = {f"{each.name}_total" if each.type == "counter" else each.name for each in found}
        self.samples = {(s.name, frozenset(s.labels.items())): s.value for m in found for s in m.samples}
        return text

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))

    async def stable(self) -> str:
        """One member."""
        joined: Any = await self.runtime.ask("g", JOIN)
        await self.runtime.ask(
            "g", SyncRequest(member_id=joined.member_id, generation_id=joined.generation_id)
        )
        return str(joined.member_id)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    storage = Fragile(f"sqlite+aiosqlite:///{folder}/m.db")
    node = await started_node(storage, initial_rebalance_delay_ms=0)
    runtime = node.runtime
    runner = Runner(
        make_app(runtime, Coordinator(id="m1", url="http://127.0.0.1:1"), 100_000, node.directory)
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ClientSession() as session:
        yield Served(runtime, storage, session, f"http://127.0.0.1:{runner.addresses[0][1]}")
    await node.leave()
    await runner.cleanup()


async def test_a_scrape_has_every_metric_of_the_catalogue(served: Served) -> None:
    """Before anybody has joined, too: dashboards and alarms find all names; only groups' gauges are empty."""
    await served.scrape()
    assert {metric.name for metric in CATALOG} <= served.names
    assert "process_resident_memory_bytes" in served.names


async def test_other_forms_are_given_to_those_who_ask(served: Served) -> None:
    """OpenMetrics, as Prometheus itself prefers it."""
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with served.session.get(served.url + "/metrics", headers=accept) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        assert (await response.text()).endswith("# EOF\n")


async def test_what_a_group_goes_through_is_counted(served: Served) -> None:
    """By the real runtime: join, rebalance, commit, heartbeat."""
    member = await served.stable()
    await served.runtime.ask("g", HeartbeatRequest(member_id=member, generation_id=1))
    await served.scrape()
    assert served.value("sparkherd_rebalances_total", group="g", cause="join") == 1
    assert served.value("sparkherd_rebalance_seconds_count") == 1
    assert served.value("sparkherd_requests_total", operation="heartbeat", code="NONE") == 1
    assert (served.value("sparkherd_storage_commit_seconds_count") or 0) >= 2
    assert (served.value("sparkherd_storage_rows_total") or 0) >= 3
    assert served.value("sparkherd_group_members", group="g", state="active") == 1
    assert served.value("sparkherd_storage_up") == 1


async def test_a_held_heartbeat_is_a_parked_request(served: Served) -> None:
    """Until it is answered."""
    member = await served.stable()
    beat = HeartbeatRequest(member_id=member, generation_id=1, wait_ms=600_000)
    held = asyncio.create_task(served.runtime.ask("g", beat))
    await eventually(lambda: served.runtime.parked)
    await served.scrape()
    assert served.value("sparkherd_parked_requests") == 1
    held.cancel()
    await asyncio.wait([held])


async def test_a_storage_that_fails_shows(served: Served) -> None:
    """As a manager without storage, and as refused requests."""
    member = await served.stable()
    served.storage.is_broken = True
    await served.runtime.ask("g", msgspec.structs.replace(JOIN, member_id=member))
    await served.scrape()
    assert served.value("sparkherd_storage_up") == 0
    assert served.value("sparkherd_storage_commit_failures_total") == 1
    assert served.value("sparkherd_requests_total", operation="join", code="COORDINATOR_NOT_AVAILABLE") == 1


async def test_a_bug_is_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its line in the log; the metric is what wakes somebody up."""
    member = await served.stable()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    rules: dict[Any, Callable[..., None]] = RULES
    monkeypatch.setitem(rules, HeartbeatRequest, broken)
    await served.runtime.ask("g", HeartbeatRequest(member_id=member, generation_id=1))
    await served.scrape()
    assert served.value("sparkherd_unexpected_errors_total") == 1


async def test_a_restarted_manager_knows_its_groups_from_the_start(tmp_path: Path) -> None:
    """Their series begin at 0, so that whatever happens next is seen."""
    async with serving(tmp_path) as before:
        await before.stable()
    async with serving(tmp_path) as after:
        await after.scrape()
        assert after.value("sparkherd_members_gone_total", group="g", how="lost") == 0
        assert after.value("sparkherd_group_members", group="g", state="active") == 1


async def test_slots_that_come_and_go_are_counted_and_take_their_groups_series_along(served: Served) -> None:
    """What happens to the group from then on is another manager's to tell."""
    await served.stable()
    slot = served.runtime._routing.slot_of("g")
    served.runtime.slots.step_down([slot])
    await served.runtime.slots.load([slot])
    served.runtime.slots.step_down([slot], "handed_over")
    await served.scrape()
    changes = "sparkherd_lease_changes_total"
    assert served.value(changes, change="lost") == 1
    assert served.value(changes, change="taken") == ManagerSettings().slots + 1
    assert served.value(changes, change="handed_over") == 1
    assert served.value("sparkherd_rebalances_total", group="g", cause="join") is None
    assert served.value("sparkherd_group_members", group="g", state="active") is None
