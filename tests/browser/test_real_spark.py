"""The console of a herd that really streams: two workers, each with Spark; every action is clicked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import Herd, Manager
from tests.acceptance.waiting import eventually
from tests.browser.chromium import PATIENCE_MS, Window, chromium
from tests.browser.clicks import badge, press, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from protocol.messages.tasks import TaskView

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

expect.set_options(timeout=PATIENCE_MS)
WORKERS = ("anna", "berta")
TASK = f"/groups/{GROUP}/tasks/ticking"


class Stage:
    """The herd, as its admin and its database see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.herd = Herd(folder, Manager(folder, "--initial-rebalance-delay-ms", "0"))
        self._view = GroupView(self.herd)
        for name in ("ticking", "tocking"):
            self._view.create(name, ticking(folder, name))
        for name in WORKERS:
            self.herd.start_worker(name, "--spark-conf", "spark.ui.enabled=true")
        self.settle()

    def task(self, name: str) -> TaskView:
        """As it is now."""
        return self._view.tasks()[name]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for what queries do."""
        eventually(holds, what, alive=self.herd.daemons)

    def settle(self) -> None:
        """Wait until both workers share all tasks, each of which has done a batch."""
        self.until(lambda: self._view.settled(len(WORKERS)), "every query has done a batch")

    def goes_on(self, name: str) -> None:
        """Wait for two more batches of a query than it has done by now."""
        done = self.task(name).batch_id or 0
        self.until(lambda: (self.task(name).batch_id or 0) > done + 1, f"{name} does batches")

    def owners(self) -> set[str | None]:
        """Names of those who have tasks."""
        names = {member: name for name, member in self._view.workers().items()}
        return {names.get(task.owner or "") for task in self._view.tasks().values()}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two workers, two endless queries."""
    made = Stage(tmp_path_factory.mktemp("real"))
    yield made
    made.herd.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def window(browser: Browser, stage: Stage) -> Iterator[Window]:
    """A page of the manager; nothing is wrong with it."""
    opened = Window(browser, stage.herd.manager.url)
    yield opened
    opened.close()
    assert opened.complaints == []


def test_a_real_query_is_seen_paused_and_resumed(window: Window, stage: Stage) -> None:
    """Its rows are in the chart, Spark's own pages are linked, and pause and resume reach the query."""
    page = window.go(TASK)
    expect(page.locator(".chart.rows .column").first).to_be_attached()
    expect(page.locator("#facts")).to_contain_text("Rows in the last batch")
    press(page, "Pause", sure=True)
    expect(badge(page)).to_have_text("PAUSED")
    press(page, "Resume")
    expect(badge(page)).to_have_text("RUNNING")
    stage.goes_on("ticking")
    window.picture("real-task-light-wide")
    page = window.go(f"/groups/{GROUP}")
    expect(page.get_by_role("link", name="open").first).to_have_attribute("href", re.compile(r"^http://"))
    window.picture("real-group-light-wide")


def test_a_real_query_is_restarted_stopped_and_run_again(window: Window, stage: Stage) -> None:
    """Each time it goes on where it was."""
    page = window.go(TASK)
    press(page, "Restart", sure=True)
    expect(page.locator("#history")).to_contain_text("restart 1")
    expect(badge(page)).to_have_text("RUNNING")
    stage.goes_on("ticking")
    press(page, "Stop", sure=True)
    expect(badge(page)).to_have_text("STOPPED")
    done = stage.task("ticking").batch_id or 0
    press(page, "Resume")
    expect(badge(page)).to_have_text("RUNNING")
    stage.goes_on("ticking")
    assert (stage.task("ticking").batch_id or 0) > done


def test_a_real_query_is_changed(window: Window, stage: Stage) -> None:
    """It is started with the new definition, on the checkpoint of the old one."""
    faster = ticking(stage.folder, "ticking")
    faster["source"]["options"]["rowsPerSecond"] = 7
    page = window.go(f"{TASK}/edit")
    page.get_by_label("Definition", exact=True).fill(json.dumps(faster))
    save(page)
    page.wait_for_url(f"**{TASK}")
    assert stage.task("ticking").definition_version == 2
    expect(badge(page)).to_have_text("RUNNING")
    stage.goes_on("ticking")


def test_a_worker_is_drained_of_real_queries_and_taken_back(window: Window, stage: Stage) -> None:
    """They run elsewhere, and some of them here again after it."""
    page = window.go("/workers")
    row = page.locator("tr", has_text="berta")
    row.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(row.locator("td.number").first).to_have_text("0")
    stage.until(lambda: stage.owners() == {"anna"}, "anna runs both")
    stage.goes_on("tocking")
    row.get_by_role("button", name="Undrain").click()
    stage.until(lambda: stage.owners() == set(WORKERS), "each has one again")
    stage.settle()


def test_a_rebalance_stops_no_real_query(window: Window, stage: Stage) -> None:
    """A new generation, the same tokens, and batches that go on."""
    tokens = {name: stage.task(name).token for name in ("ticking", "tocking")}
    page = window.go(f"/groups/{GROUP}")
    press(page, "Rebalance", sure=True)
    expect(page.locator("#generations tbody tr").first).to_contain_text("asked for by an admin")
    stage.settle()
    stage.goes_on("ticking")
    assert {name: stage.task(name).token for name in tokens} == tokens


def test_a_real_query_is_added_and_deleted(window: Window, stage: Stage) -> None:
    """It runs as soon as it is there, and has ended before it is gone."""
    page = window.go(f"/add-task?group={GROUP}")
    page.get_by_label("Definition", exact=True).fill(json.dumps(ticking(stage.folder, "added")))
    page.get_by_label("Name").fill("added")
    page.get_by_role("button", name="Add the task").click()
    page.wait_for_url(f"**/groups/{GROUP}/tasks/added")
    expect(badge(page)).to_have_text("RUNNING")
    stage.goes_on("added")
    press(page, "Delete", sure=True)
    page.wait_for_url(f"**/groups/{GROUP}")
    window.complaints.clear()  # a look at the page that was on its way is answered 404
    expect(page.locator("#tasks")).not_to_contain_text("added")
    stage.settle()
