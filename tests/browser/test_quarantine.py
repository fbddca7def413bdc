"""Rows that a task has put aside, in the console: looked at when somebody asks, and played again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import PATIENCE_MS, Window
from tests.browser.conftest import GROUP, SIFTING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.chromium import Scheme
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)
TASK = f"/groups/{GROUP}/tasks/arrivals"


@pytest.fixture(scope="module")
def sifting(stage: Stage) -> None:
    """One of the tasks puts rows aside."""
    stage.change("arrivals", json.dumps(SIFTING))
    stage.until(stage.settled, "all tasks run")


@pytest.mark.usefixtures("sifting")
def test_rows_are_looked_at_and_played_again(window: Window) -> None:
    """From the task's page to the list, to one row, and back; what became of it is said."""
    page = window.go(TASK)
    window.picture("left-out-light-wide")
    page.get_by_role("link", name="Look at rows put aside").click()
    expect(page.locator("#rows tbody tr")).to_have_count(3)
    expect(page.locator('#live[data-state="stays"]')).to_be_visible()
    page.get_by_label("Reason").select_option("violation")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**/quarantine?reason=violation&name=")
    page.get_by_role("link", name="0-41-0").click()
    expect(page.get_by_label("The row", exact=True)).to_contain_text('"delay": 99999.0')
    window.picture("quarantined-row-light-wide")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay").click()
    expect(page.get_by_role("status").filter(has_text="2 played again, 1 stayed")).to_be_visible()
    page.get_by_role("link", name="Ask again").click()
    expect(page.get_by_role("heading", name="Row 0-41-0")).to_be_visible()
    assert window.barriers() == []


@pytest.mark.usefixtures("sifting")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("light", 390), ("dark", 1280)])
def test_the_pages_of_rows_are_fit_to_be_used(
    browser: Browser, stage: Stage, scheme: Scheme, width: int
) -> None:
    """As all others: no error, nothing axe finds, and no wider than the window."""
    window = Window(browser, stage.manager.url, scheme, width)
    for name, query in (("quarantine", ""), ("quarantined-row", "?row=0-41-0")):
        window.page.goto(f"{stage.manager.url}{TASK}/quarantine{query}")
        expect(window.page.locator('#live[data-state="stays"]')).to_be_attached()
        window.picture(f"{name}-{scheme}-{width}")
        assert window.page.evaluate("document.documentElement.scrollWidth") <= width
        assert window.barriers() == []
    window.close()
    assert window.complaints == []
