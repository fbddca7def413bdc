from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from manager.core.coordinator import RULES
from manager.metrics.catalog import CATALOG
from manager.settings import ManagerSettings
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.sql_storage import SqlStorage
from protocol.messages.membership import HeartbeatRequest
from tests.fakes.turns import eventually
from tests.integration.manager.clients import serving
from tests.integration.manager.members import join, stable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from manager.core.stored_rows import Record
    from tests.integration.manager.clients import Served


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


class Scraped:
    """A manager over HTTP; `value` is a sample of its last scrape."""

    def __init__(self, served: Served) -> None:
        self.runtime = served.runtime
        self.storage = served.storage
        self.session = served.session
        self.url = f"{served.url}/metrics"
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.names: set[str] = set()

    async def scrape(self) -> str:
        """Ask as Prometheus does."""
        async with self.session.get(self.url) as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain; version=")
            text = await response.text()
        found = list(text_string_to_metric_families(text))
        self.names = {f"{each.name}_total" if each.type == "counter" else each.name for each in found}
        self.samples = {(s.name, frozenset(s.labels.items())): s.value for m in found for s in m.samples}
        return text

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, frozenset(labels.items())))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Scraped]:
    async with serving(tmp_path, storage_type=Fragile) as served:
        yield Scraped(served)


async def test_a_scrape_has_every_metric_of_the_catalogue(served: Scraped) -> None:
    """Before anybody has joined, too: dashboards and alarms find all names; only groups' gauges are empty."""
    await served.scrape()
    assert {metric.name for metric in CATALOG} <= served.names
    assert "process_resident_memory_bytes" in served.names


async def test_other_forms_are_given_to_those_who_ask(served: Scraped) -> None:
    """OpenMetrics, as Prometheus itself prefers it."""
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with served.session.get(served.url, headers=accept) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        assert (await response.text()).endswith("# EOF\n")


async def test_what_a_group_goes_through_is_counted(served: Scraped) -> None:
    """By the real runtime: join, rebalance, commit, heartbeat."""
    await served.runtime.ask("g", await stable(served.runtime))
    await served.scrape()
    assert served.value("sparkherd_rebalances_total", group="g", cause="join") == 1
    assert served.value("sparkherd_rebalance_seconds_count") == 1
    assert served.value("sparkherd_requests_total", operation="heartbeat", code="NONE") == 1
    assert (served.value("sparkherd_storage_commit_seconds_count") or 0) >= 2
    assert (served.value("sparkherd_storage_rows_total") or 0) >= 3
    assert served.value("sparkherd_group_members", group="g", state="active") == 1
    assert served.value("sparkherd_storage_up") == 1


async def test_a_held_heartbeat_is_a_parked_request(served: Scraped) -> None:
    """Until it is answered."""
    beat = replace(await stable(served.runtime), wait_ms=600_000)
    held = asyncio.create_task(served.runtime.ask("g", beat))
    await eventually(lambda: served.runtime.parked)
    await served.scrape()
    assert served.value("sparkherd_parked_requests") == 1
    held.cancel()
    await asyncio.wait([held])


async def test_a_storage_that_fails_shows(served: Scraped) -> None:
    """As a manager without storage, and as refused requests."""
    member_id = (await stable(served.runtime)).member_id
    assert isinstance(served.storage, Fragile)
    served.storage.is_broken = True
    await served.runtime.ask("g", join(member_id))
    await served.scrape()
    assert served.value("sparkherd_storage_up") == 0
    assert served.value("sparkherd_storage_commit_failures_total") == 1
    assert served.value("sparkherd_requests_total", operation="join", code="COORDINATOR_NOT_AVAILABLE") == 1


async def test_a_bug_is_counted(served: Scraped, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its line in the log; the metric is what wakes somebody up."""
    beat = await stable(served.runtime)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    rules: dict[Any, Callable[..., None]] = RULES
    monkeypatch.setitem(rules, HeartbeatRequest, broken)
    await served.runtime.ask("g", beat)
    await served.scrape()
    assert served.value("sparkherd_unexpected_errors_total") == 1


async def test_a_restarted_manager_knows_its_groups_from_the_start(tmp_path: Path) -> None:
    """Their series begin at 0, so that whatever happens next is seen."""
    async with serving(tmp_path) as before:
        await stable(before.runtime)
    async with serving(tmp_path) as served:
        after = Scraped(served)
        await after.scrape()
        assert after.value("sparkherd_members_gone_total", group="g", how="lost") == 0
        assert after.value("sparkherd_group_members", group="g", state="active") == 1


async def test_slots_that_come_and_go_are_counted_and_take_their_groups_series_along(served: Scraped) -> None:
    """What happens to the group from then on is another manager's to tell."""
    await stable(served.runtime)
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
