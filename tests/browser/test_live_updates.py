"""Pages that change by themselves, leave the reader's things alone, and can be used without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.conftest import GROUP

if TYPE_CHECKING:
    from tests.browser.chromium import Window
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)


def test_what_happens_is_seen_at_once_and_nothing_is_taken_from_the_reader(
    window: Window, stage: Stage
) -> None:
    """A new task appears; what is open stays open, what has the focus keeps it, what is typed stays."""
    page = window.go(f"/groups/{GROUP}")
    page.get_by_text("Latest moves of tasks").click()
    field = page.get_by_label("Name has")
    field.fill("appears")
    expect(page.locator("#tasks .empty")).to_have_text("No task is like that.")
    stage.create("appears-by-itself")
    expect(page.locator("#task-appears-by-itself")).to_be_visible()
    expect(field).to_be_focused()
    expect(field).to_have_value("appears")
    expect(page.locator("#moves")).to_have_attribute("open", "")
    stage.delete("appears-by-itself")
    expect(page.locator("#task-appears-by-itself")).to_have_count(0)


def test_everything_can_be_reached_with_the_keyboard(window: Window, stage: Stage) -> None:
    """The first stop skips to the content; a task is paused and resumed without a mouse."""
    page = window.go(f"/groups/{GROUP}/tasks/departures")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(3):  # two crumbs, then the first action
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("dialog").get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#facts .badge").first).to_have_text("PAUSED")
    page.get_by_role("button", name="Resume").press("Space")
    expect(page.locator("#facts .badge").first).to_have_text("RUNNING")
    stage.until(stage.settled, "it runs again")


def test_a_broken_stream_is_shown_and_comes_back(window: Window, stage: Stage) -> None:
    """A page of a manager that is gone does not look alive; when that is back, it is up to date."""
    page = window.go(f"/groups/{GROUP}")
    live = page.locator("#live")
    expect(live).to_have_text("Live")
    stage.manager.kill()
    expect(live).to_have_text("Connection lost, trying again")
    stage.manager.start()
    expect(live).to_have_text("Live")
    expect(page.locator("#timeline")).to_contain_text("when this manager took the group over")
    stage.create("since-the-restart")
    expect(page.locator("#task-since-the-restart")).to_be_visible()
    window.complaints.clear()  # the browser's own lines about connections that were refused
