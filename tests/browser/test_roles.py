"""People with tokens: each is offered what its role allows, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from playwright.sync_api import expect

from cli.client.admin_client import AdminClient, path_of
from protocol.roles import Role
from tests.acceptance.processes import Manager, sparkherd
from tests.browser.chromium import PATIENCE_MS, Window
from tests.browser.conftest import DEFINITION
from worker.client.bearer import Bearer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(600)]

expect.set_options(timeout=PATIENCE_MS)
ROLES = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
STEERING = {"Pause", "Restart", "Stop"}
BUTTONS: dict[Role, dict[str, set[str]]] = {
    Role.VIEWER: {"/": set(), "/groups/g": set(), "/groups/g/tasks/t": set(), "/workers": set()},
    Role.OPERATOR: {
        "/": set(),
        "/groups/g": {"Rebalance", "Drain"},
        "/groups/g/tasks/t": STEERING,
        "/workers": {"Drain"},
    },
    Role.ADMIN: {
        "/": {"Add a task"},
        "/groups/g": {"Rebalance", "Drain", "Delete", "Add a task"},
        "/groups/g/tasks/t": STEERING | {"Edit", "Delete"},
        "/workers": {"Drain"},
    },
}
MEMBER: dict[str, Any] = {
    "member_id": "",
    "client_id": "anna",
    "session_timeout_ms": 1_800_000,
    "rebalance_timeout_ms": 1_800_000,
    "protocol_type": "sparkherd",
    "protocols": [{"name": "sticky", "metadata": {"owned": {}, "capacity": 1.0}}],
    "require_member_id": False,
}


class Door:
    """A manager that asks for tokens, and one for each role."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite+aiosqlite:///{folder / 'manager.db'}"
        self.tokens = {role: self._made(role, url, folder) for role in ROLES}
        self.manager = Manager(folder, "--initial-rebalance-delay-ms", "0")
        admin = AdminClient([self.manager.url], bearer=Bearer(self.tokens[Role.ADMIN]))
        task = {"task": "t", "definition": DEFINITION}
        admin.call("POST", path_of("groups", "g", "tasks"), task, into=msgspec.Raw)
        admin.call("POST", path_of("groups", "g", "join"), MEMBER, into=msgspec.Raw)

    @staticmethod
    def _made(role: Role, url: str, folder: Path) -> str:
        args = ("tokens", "create", "--database", url, "--role", role.value, f"the-{role.value}")
        made = sparkherd(*args, cwd=folder)
        assert made.returncode == 0, made.stderr
        return made.stdout.split()[-1]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = Door(tmp_path_factory.mktemp("door"))
    yield made
    made.manager.stop()


def log_in(window: Window, door: Door, role: Role) -> Page:
    """Show the token to the form that the first page leads to."""
    page = window.page
    page.goto(f"{door.manager.url}/workers")
    page.get_by_label("Token").fill(door.tokens[role])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/workers")
    return page


def offered(page: Page) -> set[str]:
    """What can be pressed on the page itself, buttons that change its view aside."""
    return {text.strip() for text in page.locator("main .button, main button.action").all_inner_texts()}


@pytest.mark.parametrize("role", ROLES)
def test_a_page_offers_what_its_reader_may_do(browser: Browser, door: Door, role: Role) -> None:
    """On each page; who it is stands at the top, and nothing keeps anybody from reading."""
    window = Window(browser, door.manager.url)
    log_in(window, door, role)
    for path, buttons in BUTTONS[role].items():
        page = window.go(path)
        assert offered(page) == buttons, path
        expect(page.locator(".whoami")).to_contain_text(f"the-{role.value}")
    window.picture(f"workers-{role.value}-light-wide")
    page = window.go("/groups/g/tasks/t")
    window.picture(f"task-{role.value}-light-wide")
    assert window.barriers() == []
    window.close()
    assert window.complaints == []


def test_an_operator_s_button_works(browser: Browser, door: Door) -> None:
    """It is offered because it may be pressed; the manager, not the page, is who decides."""
    window = Window(browser, door.manager.url)
    log_in(window, door, Role.OPERATOR)
    page = window.go("/groups/g/tasks/t")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").filter(has_text="t is to pause")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    window.close()
    assert window.complaints == []


def test_a_form_of_admins_asks_for_a_token_of_one(browser: Browser, door: Door) -> None:
    """Who has its address all the same reads why, logs in as somebody else, and is there; then logs out."""
    window = Window(browser, door.manager.url)
    page = log_in(window, door, Role.VIEWER)
    page.goto(f"{door.manager.url}/groups/g/tasks/t/edit")
    expect(page.get_by_role("alert")).to_contain_text("has the role viewer, this takes admin")
    window.picture("door-light-wide")
    assert window.barriers() == []
    window.complaints.clear()  # the browser's own line about the answer 403
    page.get_by_label("Token").fill(door.tokens[Role.ADMIN])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Edit t")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto(f"{door.manager.url}/workers")
    page.wait_for_url("**/login?next=%2Fworkers")
    window.close()
    assert window.complaints == []
