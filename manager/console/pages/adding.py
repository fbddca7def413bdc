"""Adding a task: a form that says what is wrong while one types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from manager.console.page import Asked, Page
from protocol.states import Target

if TYPE_CHECKING:
    from manager.console.sources import Sources

BEGINNINGS: Final[dict[str, dict[str, Any]]] = {
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
class Beginning:
    """A definition to begin with."""

    name: str
    document: str


@dataclass(frozen=True, slots=True)
class AddingPage:
    """What the page shows."""

    group: str
    beginnings: tuple[Beginning, ...]
    targets: tuple[str, ...]


async def adding(sources: Sources, asked: Asked) -> Page:  # noqa: ARG001 - as every page is made
    """The page at `/add-task`; `?group=` fills its first field in."""
    return Page("add_task.html", "Add a task", "overview", adding_page(asked))


def adding_page(asked: Asked) -> AddingPage:
    """What the page shows."""
    return AddingPage(
        group=asked.query.get("group", ""),
        beginnings=tuple(Beginning(name, json.dumps(each, indent=2)) for name, each in BEGINNINGS.items()),
        targets=tuple(target.value for target in Target),
    )
