"""What a manager tells of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.alarms.herd_facts import ManagerFigures
from telemetry.process_memory import memory_percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.storage.tally import TransactionTally


def own_figures(tally: TransactionTally, loop_lag: Callable[[], float]) -> ManagerFigures:
    """As of now.

    Args:
        tally: of its transactions.
        loop_lag: how late the event loop was at most since it was asked before, in seconds.
    """
    return ManagerFigures(
        loop_lag_s=loop_lag(),
        memory_percent=memory_percent(),
        transactions=tally.transactions,
        failed=tally.failed,
        seconds=tally.seconds,
        last_error=tally.last_error,
    )
