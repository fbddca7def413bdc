"""What people do on the console's pages, where several tests do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def press(page: Page, name: str, *, sure: bool | None = None) -> None:
    """Press a button; where it asks, say yes or no."""
    page.get_by_role("button", name=name, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    if sure is None:
        expect(dialog).to_have_count(0)
        return
    expect(dialog).to_be_visible()
    dialog.get_by_role("button").nth(int(sure)).click()
    expect(dialog).to_have_count(0)


def badge(page: Page) -> Locator:
    """The state of the task whose page it is."""
    return page.locator("#facts .badge").first


def save(page: Page, *, sure: bool = True) -> None:
    """Save, and say yes or no."""
    page.get_by_role("button", name="Save the definition").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("started with the new definition")
    dialog.get_by_role("button").nth(int(sure)).click()
    expect(dialog).to_have_count(0)
