"""Alarms in a browser: their rules, what fires, who has seen it, and what nobody is told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from cli.client.admin_client import path_of
from protocol.messages.alarms import AlarmRulesResponse, SilenceListResponse
from tests.browser.chromium import PATIENCE_MS
from tests.browser.conftest import GROUP
from tests.browser.fake_workers import BROKEN

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.chromium import Window
    from tests.browser.conftest import Stage

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)
RULES = path_of("alarms", "rules")
FAILED = msgspec.json.encode(
    {"rules": [{"name": "failed", "kind": "failed", "severity": "critical", "groups": GROUP}]}
).decode()
LATER_MS = 120_000
"""A manager begins to ring a minute after it has taken a group up."""


def write(page: Page, document: str) -> None:
    """Have the form say this."""
    page.get_by_label("All rules").fill(document)


def test_rules_are_looked_at_and_saved(window: Window, stage: Stage) -> None:
    """What is wrong with them is told by its place; what somebody else saved meanwhile is not overwritten."""
    page = window.go("/alarms")
    page.get_by_role("link", name="Edit the rules").click()
    write(page, "{")
    page.get_by_role("button", name="Look for problems").click()
    expect(page.locator("#rules-verdict")).to_contain_text("This is no JSON")
    write(page, '{"rules": [{"name": "lag", "kind": "lag_rows"}]}')
    page.get_by_role("button", name="Look for problems").click()
    expect(page.locator("#rules-problems")).to_contain_text("rules[0].threshold")
    page.get_by_role("button", name="Begin with the usual ones").click()
    page.get_by_role("button", name="Look for problems").click()
    expect(page.locator("#rules-verdict")).to_have_text("Nothing is wrong with them.")
    assert rules_of(stage).rules == ()
    stage.client.call("PUT", RULES, msgspec.Raw(FAILED.encode()), into=AlarmRulesResponse)
    page.get_by_role("button", name="Save the rules").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed the rules")
    page.get_by_role("button", name="Drop my change and begin again").click()
    expect(page.get_by_label("All rules")).to_have_value(msgspec.json.format(FAILED, indent=2))
    window.complaints.clear()  # the browser's own lines about the answers 400 and 412
    write(page, FAILED.replace('"failed"', '"broken-down"', 1))
    page.get_by_role("button", name="Save the rules").click()
    page.wait_for_url("**/alarms#rules")
    assert [rule.name for rule in rules_of(stage).rules] == ["broken-down"]
    assert window.barriers() == []


def test_a_key_that_is_typed_twice_is_told(window: Window, stage: Stage) -> None:
    """The browser itself would take the last one."""
    page = window.go("/alarms/rules")
    rule = '{"name": "r", "kind": "lag_rows", "threshold": 1, "threshold": 9}'
    for document, place in ((f'{{"rules": [{rule}]}}', "rules[0]"), (f"[{rule}]", "rules[0]")):
        page.locator("#rules-document").fill(document)
        page.get_by_role("button", name="Look for problems").click()
        expect(page.locator("#rules-verdict")).to_contain_text(f"{place}.threshold: the key is there twice")
    assert "r" not in [each.name for each in rules_of(stage).rules]
    assert window.barriers() == []
    window.complaints.clear()  # the browser's own lines about the answers 400, the last of which comes late


def test_what_fires_is_seen_and_acknowledged(window: Window, stage: Stage) -> None:
    """On its own page and on the task's, with who has seen it."""
    stage.client.call("PUT", RULES, msgspec.Raw(FAILED.encode()), into=AlarmRulesResponse)
    page = window.go("/alarms")
    line = page.locator("#firing tbody tr").filter(has_text=BROKEN)
    expect(line).to_contain_text("critical", timeout=LATER_MS)
    window.picture("alarm-light-wide")
    line.get_by_role("button", name="Acknowledge").click()
    expect(line).to_contain_text("seen by console")
    line.get_by_role("link", name=BROKEN).click()
    expect(page.locator("#alarms tbody tr")).to_contain_text("firing")
    expect(page.locator("#alarms tbody tr")).to_contain_text("seen by console")
    assert window.barriers() == []


def test_a_silence_is_begun_and_ended(window: Window, stage: Stage) -> None:
    """It needs a reason; it is shown until it is over."""
    page = window.go(f"/alarms?group={GROUP}")
    page.get_by_role("button", name="Tell nobody").click()
    assert silences_of(stage) == []
    page.get_by_label("Why").fill("the brokers are upgraded")
    page.get_by_role("button", name="Tell nobody").click()
    line = page.locator("#silences tbody tr")
    expect(line).to_contain_text(f"groups {GROUP}")
    assert silences_of(stage) == ["the brokers are upgraded"]
    line.get_by_role("button", name="End").click()
    expect(line).to_have_count(0)
    assert silences_of(stage) == []


def rules_of(stage: Stage) -> AlarmRulesResponse:
    return stage.client.get(RULES, AlarmRulesResponse)


def silences_of(stage: Stage) -> list[str]:
    told = stage.client.get(path_of("alarms", "silences"), SilenceListResponse)
    return [silence.reason for silence in told.silences]
