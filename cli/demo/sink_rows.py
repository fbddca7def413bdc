"""How many flights of each task are in the sink, looked up again and again while the demo runs.

The sink is asked and not the manager: of a task that is moved or killed right after a batch, nobody may hear
that the batch was written, and its new owner may have no more to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.demo.plan import DELAYS, FLIGHTS

if TYPE_CHECKING:
    from cli.demo.plan import DemoSink, Plan


class SinkRows:
    """Counts them."""

    def __init__(self, sink: DemoSink, plan: Plan) -> None:
        self._sink = sink
        self._plan = plan

    def by_task(self) -> dict[str, int]:
        """How many flights of each task are there; none where nothing was ever written."""
        rows = {
            FLIGHTS: self._sink.counted(FLIGHTS, self._plan.flights_by),
            DELAYS: self._sink.summed(DELAYS, "carrier", "flights"),
        }
        return {
            task.name: sum(rows[task.table].get(value, 0) for value in task.values)
            for task in self._plan.tasks
        }
