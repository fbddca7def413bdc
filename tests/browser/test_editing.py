"""Changing a task's definition in a browser, alone and while somebody else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from playwright.sync_api import expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.clicks import save
from tests.browser.conftest import DEFINITION, GROUP

if TYPE_CHECKING:
    from tests.browser.chromium import Window
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)
TASK = f"/groups/{GROUP}/tasks/routes"
SEED = 9_007_199_254_740_993
"""One more than a script's numbers can tell apart."""


def changed(**options: Any) -> str:
    source = {"format": "rate", "options": {"rowsPerSecond": 10, **options}}
    return msgspec.json.encode(DEFINITION | {"source": source}).decode()


def test_a_definition_is_changed(window: Window, stage: Stage) -> None:
    """From the task's page and back: what is wrong is said at once, and only a yes is a yes."""
    page = window.go(TASK)
    page.get_by_role("link", name="Edit").click()
    definition, verdict = page.get_by_label("Definition", exact=True), page.locator("#verdict")
    expect(verdict).to_have_text("The definition is fine.")
    definition.fill(changed().replace("rate", "rate-of-nothing", 1).replace("append", "x") + "x")
    expect(page.locator("#problems")).to_contain_text("not JSON")
    definition.fill('{"source": {"format": "rate"}, "sink": {"format": "noop"}, "weight": -1}')
    expect(page.locator("#problems")).to_contain_text("weight")
    page.get_by_role("button", name="Save the definition").click()
    expect(definition).to_be_focused()
    before = stage.tasks()["routes"]
    definition.fill(changed(seed=SEED))
    save(page, sure=False)
    assert stage.tasks()["routes"].definition_version == before.definition_version
    save(page)
    page.wait_for_url(f"**{TASK}")
    after = stage.tasks()["routes"]
    assert after.definition_version == before.definition_version + 1
    assert str(SEED).encode() in bytes(after.definition)
    expect(page.locator("#definition")).to_contain_text(str(SEED))
    stage.until(stage.settled, "it runs again")


def test_what_is_not_changed_is_not_saved(window: Window, stage: Stage) -> None:
    """Nothing is asked, nothing restarted."""
    before = stage.tasks()["routes"]
    page = window.go(f"{TASK}/edit")
    page.get_by_role("button", name="Save the definition").click()
    expect(page.get_by_role("status").filter(has_text="Nothing is changed yet.")).to_be_visible()
    assert stage.tasks()["routes"].definition_version == before.definition_version


def test_a_change_by_somebody_else_is_not_overwritten(window: Window, stage: Stage) -> None:
    """It is refused and said, what was typed is still there; begun again, it can be saved."""
    page = window.go(f"{TASK}/edit")
    definition = page.get_by_label("Definition", exact=True)
    mine, theirs = changed(rampUpTime="1s"), changed(rampUpTime="2s")
    definition.fill(mine)
    stage.change("routes", theirs)
    save(page)
    conflict = page.get_by_role("alert")
    expect(conflict).to_contain_text("Somebody else has changed routes")
    expect(conflict).to_be_focused()
    expect(definition).to_have_value(mine)
    assert b'"2s"' in bytes(stage.tasks()["routes"].definition)
    window.picture("edit-conflict-light-wide")
    assert window.barriers() == []
    window.complaints.clear()  # the browser's own line about the answer 412
    page.get_by_role("button", name="Drop my change and begin again").click()
    expect(conflict).to_have_count(0)
    assert msgspec.json.decode(definition.input_value()) == msgspec.json.decode(theirs)
    definition.fill(mine)
    save(page)
    page.wait_for_url(f"**{TASK}")
    assert b'"1s"' in bytes(stage.tasks()["routes"].definition)
    stage.until(stage.settled, "it runs again")


def test_a_definition_is_tried_on_a_worker(window: Window, stage: Stage) -> None:
    """On the page where it is changed: what a worker says of it, with rows; nothing is saved."""
    before = stage.tasks()["routes"]
    page = window.go(f"{TASK}/edit")
    page.get_by_role("button", name="Try on a worker").click()
    expect(page.locator("#tried-verdict")).to_contain_text("No problems, by")
    expect(page.locator("#tried-rows th")).to_contain_text("value")
    expect(page.locator("#tried-rows th code")).to_have_text("bigint")
    expect(page.locator("#tried-rows td")).to_have_text(["2", "4"])
    assert stage.tasks()["routes"].definition_version == before.definition_version
    window.picture("try-out-light-wide")
    assert window.barriers() == []


def test_a_task_to_be_is_tried_on_a_worker(window: Window) -> None:
    """On the page where it is added, in the group that is named there; without one, that is asked for."""
    page = window.go("/add-task")
    page.get_by_role("button", name="Numbers that tick").click()
    page.get_by_role("button", name="Try on a worker").click()
    expect(page.get_by_label("Group")).to_be_focused()
    page.get_by_label("Group").fill(GROUP)
    page.get_by_label("with rows from").select_option("the end")
    with page.expect_request("**/checks") as asked:
        page.get_by_role("button", name="Try on a worker").click()
    assert msgspec.json.decode(asked.value.post_data or "")["begin"] == "end"
    expect(page.locator("#tried-rows td")).to_have_text(["2", "4"])
