"""The demo's tasks, and by which rows of the sink one sees how far each has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FLIGHTS: Final = "flights"
DELAYS: Final = "delays"


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A task to create, and which rows of the sink are its own.

    They are those of `table` that have one of `values` in the column that tells tasks apart; `rows` is how
    many flights it is to read, None if nobody knows beforehand.
    """

    name: str
    definition: Mapping[str, Any]
    table: str
    values: tuple[str | int, ...]
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All tasks; of the table `flights`, `flights_by` is the column that tells them apart.

    `rows` is how many flights they all together are to read: each table takes every flight.
    """

    tasks: tuple[DemoTask, ...]
    flights_by: str
    rows: int


def sink(workdir: Path, **options: Any) -> dict[str, Any]:
    """The sink of every task: a table of one database."""
    return {"format": "sql", "options": {"url": f"sqlite:///{sink_file(workdir)}", **options}}


def sink_file(workdir: Path) -> Path:
    """Where that database is."""
    return workdir / "flights.db"
