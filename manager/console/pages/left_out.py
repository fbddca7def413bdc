"""What of a task's rows did not go to its sink, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from definition.left_out import MOST_REASONS, Reasons, reasons_in
from manager.console.formatting import figure
from protocol.task_metrics import figure as figure_of
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One reason; `what` becomes of its rows, by the definition of now."""

    reason: str
    what: str
    rows: str


@dataclass(frozen=True, slots=True)
class LeftOutPanel:
    """The panel: how many rows, each once, and a line a reason, under which a row may count twice.

    `puts_aside` says whether there are rows that can be looked at.
    """

    dropped: str
    quarantined: str
    lines: tuple[ReasonLine, ...]
    puts_aside: bool


def left_out_panel(metrics: Mapping[str, Any] | None, definition: msgspec.Raw) -> LeftOutPanel | None:
    """What is shown of the last report; nothing of a task that leaves no rows out, by what is known of it."""
    reasons = reasons_in(definition)
    counts = figures(metrics, "left_out")
    dropped, quarantined = (figure_of(metrics, name) or 0 for name in ("dropped", "quarantined"))
    if not (reasons.names or dropped or quarantined):
        return None
    names = islice(dict.fromkeys((*reasons.names, *counts)), 2 * MOST_REASONS)
    lines = tuple(ReasonLine(name, _what(name, reasons), figure(counts.get(name, 0))) for name in names)
    return LeftOutPanel(figure(dropped), figure(quarantined), lines, bool(reasons.quarantined))


def _what(reason: str, reasons: Reasons) -> str:
    if reason in reasons.quarantined:
        return "put aside"
    return "dropped" if reason in reasons.dropped else "no reason any more"
