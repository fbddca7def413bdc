"""Debian's Chromium, driven by Playwright; what a page complains of is kept."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "the browser tests need Chromium on the PATH; Debian and Ubuntu: sudo apt-get install chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 180_000
SCREENSHOTS = Path(__file__).parent / "screenshots"
"""Kept for people to look at; git does not."""
NOTE_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`content policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
Scheme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; without one, what to install."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise AssertionError(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Window:
    """One page in a browser of its own; `complaints` are its errors, whoever made them."""

    def __init__(self, browser: Browser, base: str, scheme: Scheme = "light", width: int = 1280) -> None:
        self._context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
        )
        self._base = base
        self.complaints: list[str] = []
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.add_init_script(NOTE_VIOLATIONS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def go(self, path: str) -> Page:
        """Open a page, and wait until it is live."""
        self.page.goto(self._base + path)
        self.page.locator('#live[data-state="live"]').wait_for()
        return self.page

    def picture(self, name: str) -> None:
        """Keep what is seen of the whole page."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def barriers(self) -> list[str]:
        """What axe finds that keeps people from using the page."""
        self.page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found: dict[str, Any] = self.page.evaluate("axe.run()")
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def close(self) -> None:
        """It is gone."""
        self._context.close()
