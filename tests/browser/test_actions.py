"""Every action of the console, clicked on a live group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.clicks import badge, press
from tests.browser.conftest import GROUP, WORKERS

if TYPE_CHECKING:
    from tests.browser.chromium import Window
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)
TASK = f"/groups/{GROUP}/tasks/arrivals"


def test_a_task_is_paused_resumed_stopped_and_restarted(window: Window, stage: Stage) -> None:
    """What stops a query is asked about first; what came of it is seen without loading the page again."""
    page = window.go(TASK)
    press(page, "Pause", sure=True)
    expect(page.get_by_role("status").filter(has_text="arrivals is to pause")).to_be_visible()
    expect(badge(page)).to_have_text("PAUSED")
    press(page, "Resume")
    expect(badge(page)).to_have_text("RUNNING")
    press(page, "Restart", sure=True)
    expect(page.locator("#facts")).to_contain_text("Restarts asked for 1", use_inner_text=True)
    expect(page.locator("#history")).to_contain_text("restart 1")
    press(page, "Stop", sure=True)
    expect(badge(page)).to_have_text("STOPPED")
    expect(page.get_by_role("button", name="Restart")).to_be_disabled()
    press(page, "Resume")
    expect(badge(page)).to_have_text("RUNNING")
    stage.until(stage.settled, "it runs again")


def test_a_no_is_a_no(window: Window, stage: Stage) -> None:
    """Cancel and Escape leave everything as it is, and lead back to the button."""
    page = window.go(TASK)
    token = stage.tasks()["arrivals"].token
    press(page, "Stop", sure=False)
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    page.get_by_role("button", name="Stop").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    after = stage.tasks()["arrivals"]
    assert (after.target, after.token) == ("RUNNING", token)


def test_a_worker_is_drained_and_taken_back(window: Window, stage: Stage) -> None:
    """Its tasks go elsewhere, and come back after a rebalance."""
    page = window.go("/workers")
    row = page.locator("tr", has_text="berta")
    row.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(row.locator(".tag.warn")).to_have_text("draining")
    expect(row.locator("td.number").first).to_have_text("0")
    row.get_by_role("button", name="Undrain").click()
    expect(row.locator(".tag.warn")).to_have_count(0)
    expect(row.locator("td.number").first).not_to_have_text("0")
    stage.until(stage.settled, "all is as before")


def test_a_group_is_rebalanced(window: Window, stage: Stage) -> None:
    """A new generation, seen in the history with its reason, and told beside the state machine."""
    page = window.go(f"/groups/{GROUP}")
    expect(page.locator("#machine .state.lit")).to_have_text("Stable")
    before = stage.group().generation_id
    press(page, "Rebalance", sure=True)
    newest = page.locator("#generations tbody tr").first
    expect(newest).to_contain_text("asked for by an admin")
    expect(newest.locator("td").first).not_to_have_text(str(before))
    stage.until(stage.settled, "all have joined again")
    expect(page.get_by_role("button", name="Delete")).to_be_disabled()
    assert page.locator("#timeline .worker").count() == len(WORKERS)


def test_a_task_is_added_with_what_is_wrong_said_while_one_types(window: Window) -> None:
    """Not JSON, then a field at fault, then a name that is taken; in the end it runs."""
    page = window.go(f"/add-task?group={GROUP}")
    definition, verdict = page.get_by_label("Definition", exact=True), page.locator("#verdict")
    expect(verdict).to_have_text("The definition is fine.")
    definition.fill('{"source": {"format": "rate"},')
    expect(page.locator("#problems")).to_contain_text("not JSON")
    definition.fill('{"source": {"format": "rate"}, "sink": {"format": "sql", "options": {"mode": "x"}}}')
    problem = page.locator("#problems button", has_text="sink.options")
    expect(problem.first).to_be_visible()
    problem.first.click()
    expect(definition).to_be_focused()
    page.get_by_role("button", name="Numbers that tick").click()
    expect(verdict).to_have_text("The definition is fine.")
    page.get_by_role("button", name="Add the task").click()
    expect(page.locator("#task-name-problem")).to_have_text("give it a name")
    page.get_by_label("Name").fill("arrivals")
    page.get_by_role("button", name="Add the task").click()
    expect(page.locator("#task-name-problem")).to_contain_text("there is a task arrivals")
    window.complaints.clear()  # the browser's own line about the answer 409
    page.get_by_label("Name").fill("added")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/groups/{GROUP}/tasks/added")
    expect(badge(page)).to_have_text("RUNNING")


def test_a_task_is_deleted(window: Window, stage: Stage) -> None:
    """It is asked about first, and leads back to the group."""
    stage.create("to-be-deleted")
    page = window.go(f"/groups/{GROUP}/tasks/to-be-deleted")
    press(page, "Delete", sure=True)
    page.wait_for_url(f"**/groups/{GROUP}")
    window.complaints.clear()  # a look at the page that was on its way is answered 404
    assert "to-be-deleted" not in stage.tasks()
    stage.until(stage.settled, "the others run")


def test_an_empty_group_is_deleted(window: Window, stage: Stage) -> None:
    """With all its tasks; afterwards there is none of that name."""
    stage.create("t", "to-go")
    page = window.go("/groups/to-go")
    press(page, "Delete", sure=True)
    page.wait_for_url("**/")
    window.complaints.clear()  # as for a task
    expect(page.locator("#groups")).not_to_contain_text("to-go")


def test_what_went_wrong_is_said(window: Window, stage: Stage) -> None:
    """An action on what is gone meanwhile is answered where it is seen, and heard."""
    stage.create("fleeting")
    page = window.go(f"/groups/{GROUP}/tasks/fleeting")
    page.evaluate("document.body.dataset.still = ''")
    stage.delete("fleeting")
    press(page, "Pause", sure=True)
    expect(page.get_by_role("alert")).to_contain_text("there is no task fleeting")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    window.complaints.clear()  # the browser's own line about the answer 404
    stage.until(stage.settled, "the others run")
