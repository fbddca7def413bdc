"""Adding a task: a form that says what is wrong while one types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from manager.console.page import Page, PageRequest
from protocol.states import Target

if TYPE_CHECKING:
    from manager.console.page_data import PageData

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "Files of JSON into a table": {
        "source": {
            "format": "json",
            "schema": "sensor STRING, taken_at TIMESTAMP, celsius DOUBLE",
            "options": {"path": "incoming", "maxFilesPerTrigger": 1},
        },
        "sql": "SELECT sensor, taken_at, celsius FROM source WHERE celsius IS NOT NULL",
        "sink": {
            "format": "sql",
            "options": {"url": "sqlite:///readings.db", "table": "readings", "mode": "append"},
        },
        "trigger": {"processing_time": "1 second"},
    },
    "Numbers that tick, to try it out": {
        "source": {"format": "rate", "options": {"rowsPerSecond": 5}},
        "sink": {"format": "noop"},
    },
    "PySpark code of your own": {
        "entrypoint": "package.module:function",
        "options": {"path": "incoming"},
        "trigger": {"processing_time": "10 seconds"},
    },
}


@dataclass(frozen=True, slots=True)
class Example:
    """A definition to begin with, by what it is called."""

    name: str
    document: str


@dataclass(frozen=True, slots=True)
class AddTaskPage:
    """What the page shows."""

    group: str
    examples: tuple[Example, ...]
    targets: tuple[str, ...]


async def add_task(page_data: PageData, request: PageRequest) -> Page:  # noqa: ARG001 - as every page is made
    """The page at `/add-task`; `?group=` fills its first field in."""
    return Page("add_task.html", "Add a task", "overview", add_task_page(request))


def add_task_page(request: PageRequest) -> AddTaskPage:
    """What the page shows."""
    return AddTaskPage(
        group=request.query.get("group", ""),
        examples=tuple(Example(name, json.dumps(each, indent=2)) for name, each in EXAMPLES.items()),
        targets=tuple(target.value for target in Target),
    )
