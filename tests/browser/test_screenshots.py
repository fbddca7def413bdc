"""Every page in light and dark, wide and narrow: nothing to complain of, and pictures to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import Window
from tests.browser.conftest import GROUP, LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.chromium import Scheme
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

PAGES = {
    "overview": "/",
    "group": f"/groups/{GROUP}",
    "idle-group": "/groups/idle",
    "task": f"/groups/{GROUP}/tasks/arrivals",
    "failed-task": f"/groups/{GROUP}/tasks/broken",
    "long-name": f"/groups/{GROUP}/tasks/{LONG}",
    "workers": "/workers",
    "events": "/events",
    "alarms": "/alarms",
    "alarm-rules": "/alarms/rules",
    "add-task": f"/add-task?group={GROUP}",
    "edit-task": f"/groups/{GROUP}/tasks/arrivals/edit",
}
WIDTHS = {"wide": 1280, "narrow": 390}
KINDS = {"light": ("wide", "narrow"), "dark": ("wide",)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fit_to_be_used(browser: Browser, stage: Stage, name: str, scheme: Scheme) -> None:
    """No error, nothing the content policy stops, nothing axe finds; it fits a narrow window, too."""
    for kind in KINDS[scheme]:
        width = WIDTHS[kind]
        window = Window(browser, stage.manager.url, scheme, width)
        page = window.go(PAGES[name])
        window.picture(f"{name}-{scheme}-{kind}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert window.barriers() == []
        window.close()
        assert window.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_worker_is_fit_to_be_used(browser: Browser, stage: Stage, scheme: Scheme) -> None:
    """Its name leads there; what it takes and which of its tasks costs what are told, however wide it is."""
    for kind in KINDS[scheme]:
        width = WIDTHS[kind]
        window = Window(browser, stage.manager.url, scheme, width)
        page = window.go(f"/groups/{GROUP}")
        page.locator("#map tbody th a").first.click()
        page.locator("#resources meter").first.wait_for()
        page.locator(".chart.memory").wait_for()
        window.picture(f"worker-{scheme}-{kind}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert window.barriers() == []
        window.close()
        assert window.complaints == []


def test_nine_hundred_tasks_are_no_trouble(browser: Browser, stage: Stage) -> None:
    """Each has its place on the map, fifty are in the table, and one is found by its name as one types."""
    for number in range(900):
        stage.create(f"task-{number:03}", "many")
    window = Window(browser, stage.manager.url)
    page = window.go("/groups/many")
    assert page.locator(".map .cell").count() == 900
    assert page.locator("#tasks tbody tr").count() == 50
    window.picture("many-light-wide")
    page.get_by_label("Name has").fill("task-777")
    page.locator("#task-task-777").wait_for()
    page.locator("#task-task-000").wait_for(state="detached")
    assert page.locator("#tasks tbody tr").count() == 1
    assert "q=task-777" in page.url
    assert window.barriers() == []
    window.close()
    assert window.complaints == []
