"""What commands say of rows of a task that did not go to its sink."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cli.views.output import printable
from protocol.task_metrics import figure, figures

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_REASONS: Final = 62
"""That a definition can have; a report may have anything."""


def left_out(metrics: Mapping[str, Any] | None) -> int | None:
    """How many rows were dropped or put aside, each once; None if the task does not tell of such rows."""
    told = [figure(metrics, name) for name in ("dropped", "quarantined")]
    return None if told == [None, None] else int(sum(each or 0 for each in told))


def left_out_sentence(metrics: Mapping[str, Any] | None) -> str | None:
    """`12 rows were put aside, 3 dropped: late 12, sane 3`; None if there are no such rows."""
    if not left_out(metrics):
        return None
    dropped, quarantined = (figure(metrics, name) or 0 for name in ("dropped", "quarantined"))
    reasons = islice(figures(metrics, "left_out").items(), MOST_REASONS)
    words = ", ".join(f"{printable(name)} {rows:,.0f}" for name, rows in reasons if rows)
    return f"{quarantined:,.0f} rows were put aside, {dropped:,.0f} dropped" + (f": {words}" if words else "")
