"""What a task costs, as pages show it: whatever a worker tells, of which a few figures have a meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from manager.console.charts.ranked import Bar, in_order
from manager.console.formatting import duration, figure, moment, size
from protocol.task_metrics import figure as figure_of
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from markupsafe import Markup

PHASES: Final = {
    "planning": "Planning",
    "reading": "Asking sources",
    "writing": "Reading and writing rows",
    "commit": "Spark's logs",
}
"""By the names that workers report them under."""
_YEAR_9999_MS: Final = 253_402_214_400_000


@dataclass(frozen=True, slots=True)
class CostFact:
    """One figure in words."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CostsPanel:
    """The panel: where the time of the last batch went, and what else is known."""

    phases: Markup | None
    facts: tuple[CostFact, ...]


def costs_panel(metrics: Mapping[str, Any] | None) -> CostsPanel | None:
    """What is shown of the last report; None if it tells of no costs."""
    phases, facts = _phases(figures(metrics, "phases_ms")), tuple(_facts(metrics))
    return CostsPanel(phases, facts) if phases is not None or facts else None


def state_memory(metrics: Mapping[str, Any] | None) -> float | None:
    """What the state of its query takes of the worker's memory, in bytes; None if it tells of none."""
    return figures(metrics, "state").get("memory_bytes")


def _phases(told: Mapping[str, float]) -> Markup | None:
    bars = [Bar(words, told[name]) for name, words in PHASES.items() if name in told]
    return in_order("phases", "Where the time of the last batch went", bars, duration) if bars else None


def _facts(metrics: Mapping[str, Any] | None) -> Iterator[CostFact]:
    state = figures(metrics, "state")
    forms: tuple[tuple[str, Mapping[str, float], str, Callable[[float], str]], ...] = (
        ("Rows in its state", state, "rows", figure),
        ("Size of the state", state, "bytes", size),
        ("Memory of the state", state, "memory_bytes", size),
    )
    for words, told, name, form in forms:
        if name in told:
            yield CostFact(words, form(told[name]))
    for words, name, form in (
        ("Watermark", "watermark_ms", _moment),
        ("It was behind by", "watermark_lag_ms", duration),
        ("Rows dropped as too late", "late_rows", figure),
        ("Batches longer than its trigger", "late_batches", figure),
        ("Spilled to disk", "spilled_bytes", size),
    ):
        if (value := figure_of(metrics, name)) is not None:
            yield CostFact(words, form(value))


def _moment(at_ms: float) -> str:
    """Of the far future there is none: a worker may tell any number."""
    return moment(at_ms) if at_ms < _YEAR_9999_MS else "beyond the year 9999"
