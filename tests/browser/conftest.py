"""A manager as a process, workers that run nothing, and a browser; one of each for a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cli.client.admin_client import path_of
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import CreateTaskRequest, TaskListResponse, TaskResponse, TaskView
from tests.acceptance.group_view import is_moving
from tests.acceptance.processes import Daemon, Manager
from tests.acceptance.waiting import eventually
from tests.browser.chromium import Window, chromium
from tests.browser.fake_workers import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
START_WORKERS = (
    f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); "
    "runpy.run_module('tests.browser.fake_workers', run_name='__main__')"
)
"""It runs in a folder of its own, from which the tests cannot be imported."""
GROUP = "flights"
WORKERS = ("anna", "berta", "clara")
NAMES = ("arrivals", "departures", "delays", "routes", "weather.hourly", BROKEN)
LONG = "cancelled-flights-of-the-last-seven-days-by-carrier-and-airport-of-departure"
DEFINITION: dict[str, Any] = {
    "source": {"format": "rate", "options": {"rowsPerSecond": 10}},
    "sql": "SELECT value FROM source WHERE value % 2 = 0",
    "sink": {
        "format": "sql",
        "options": {"url": "postgresql://herd:${env:DB_PASSWORD}@db/flights", "table": "even"},
    },
    "restart": {"max_restarts": 0},
}
SIFTING: dict[str, Any] = DEFINITION | {
    "expect": [{"name": "possible", "where": "value >= 0", "on_violation": "quarantine"}],
    "on_error": "quarantine",
}
"""Of a task that puts rows aside."""


class Stage:
    """The manager and its workers, as an admin sees them."""

    def __init__(self, manager: Manager, workers: Daemon) -> None:
        self.manager = manager
        self.workers = workers
        self.client = manager.client()

    def create(self, name: str, group: str = GROUP) -> None:
        """A new task."""
        body = CreateTaskRequest(task=name, definition=msgspec.Raw(msgspec.json.encode(DEFINITION)))
        self.client.call("POST", path_of("groups", group, "tasks"), body, into=TaskResponse)

    def change(self, name: str, definition: str) -> None:
        """As somebody else would, who has not seen what is there."""
        body = {"definition": msgspec.Raw(definition.encode())}
        self.client.call("PUT", path_of("groups", GROUP, "tasks", name), body, into=TaskResponse)

    def delete(self, name: str) -> None:
        """Without asking anybody."""
        self.client.call("DELETE", path_of("groups", GROUP, "tasks", name), into=msgspec.Raw)

    def tasks(self) -> dict[str, TaskView]:
        """All tasks of the group by name."""
        found = self.client.get(path_of("groups", GROUP, "tasks"), TaskListResponse)
        return {task.task: task for task in found.tasks}

    def group(self) -> DescribeGroupResponse:
        """The group."""
        return self.client.get(path_of("groups", GROUP), DescribeGroupResponse)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for what workers do."""
        eventually(holds, what, alive=[self.manager, self.workers])

    def settled(self, workers: int = len(WORKERS)) -> bool:
        """Whether so many workers have all tasks, and all do what they are to."""
        described = self.group()
        return (
            described.state == "Stable"
            and len(described.members) == workers
            and not is_moving(described)
            and all(
                task.state == ("FAILED" if name == BROKEN else "RUNNING")
                for name, task in self.tasks().items()
            )
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A group of three workers in which one task has failed; another group has none."""
    folder = tmp_path_factory.mktemp("stage")
    manager = Manager(folder, "--initial-rebalance-delay-ms", "0")
    workers = Daemon("workers", [manager.url, GROUP, *WORKERS], folder, ("-c", START_WORKERS))
    made = Stage(manager, workers)
    for name in (*NAMES, LONG):
        made.create(name)
    made.create("nobody-is-there", "idle")
    made.until(made.settled, "all tasks run")
    yield made
    workers.kill()
    manager.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One that was started; it holds an event loop, so it ends with the module."""
    with chromium() as started:
        yield started


@pytest.fixture
def window(browser: Browser, stage: Stage) -> Iterator[Window]:
    """A page of the manager, whose complaints are nobody's fault but its own."""
    opened = Window(browser, stage.manager.url)
    yield opened
    opened.close()
    assert opened.complaints == []
