"""The console of a herd that really streams: one worker, one Spark session, one query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import Herd, Manager
from tests.acceptance.waiting import eventually
from tests.browser.chromium import PATIENCE_MS, Window, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    """A manager, and a worker that runs one endless query."""
    made = Herd(tmp_path, Manager(tmp_path, "--initial-rebalance-delay-ms", "0"))
    view = GroupView(made)
    view.create("ticking", ticking(tmp_path, "numbers"))
    made.start_worker("anna", "--spark-conf", "spark.ui.enabled=true")
    eventually(lambda: view.settled(1), "the query has done a batch", alive=made.daemons)
    yield made
    made.stop()


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_a_real_query_is_seen_and_steered(herd: Herd, browser: Browser) -> None:
    """Its rows are in the chart, Spark's own pages are linked, and pause and resume reach the query."""
    window = Window(browser, herd.manager.url)
    page = window.go(f"/groups/{GROUP}/tasks/ticking")
    expect(page.locator(".chart.rows .column").first).to_be_attached()
    expect(page.locator("#facts")).to_contain_text("Rows in the last batch")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("#facts .badge").first).to_have_text("PAUSED")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#facts .badge").first).to_have_text("RUNNING")
    window.picture("real-task-light-wide")
    page = window.go(f"/groups/{GROUP}")
    expect(page.get_by_role("link", name="open")).to_have_attribute("href", re.compile(r"^http://"))
    window.picture("real-group-light-wide")
    window.close()
    assert window.complaints == []
