"""What a worker counts as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import TaskErrorsResponse
from telemetry.loop import LOOP_LAG, LoopLag
from telemetry.metrics import Instruments
from worker.metrics import catalog

if TYPE_CHECKING:
    import msgspec


class Meter:
    """The instruments of one worker, which is in one group."""

    def __init__(self, group: str) -> None:
        self.instruments = make = Instruments()
        self._group = group
        self._requests = make.counter(catalog.REQUESTS)
        self._stale = make.counter(catalog.STALE_TOKENS)
        self._fenced = make.counter(catalog.FENCED_WRITES).labels(group)
        self._losses = make.counter(catalog.LOSSES).labels(group)
        self.loop_lag = LoopLag(make.histogram(LOOP_LAG))
        for operation in ("report", "release"):  # a series that begins with an event hides it from `increase`
            self._stale.labels(group, operation)

    def answered(self, operation: str, answer: msgspec.Struct) -> None:
        """The manager answered a request, or nobody did."""
        code = answer.code if isinstance(answer, Failure) else ErrorCode.NONE
        self._requests.labels(self._group, operation, code.name).inc()
        if isinstance(answer, TaskErrorsResponse):
            stale = sum(each == ErrorCode.STALE_TOKEN for each in answer.tasks.values())
            self._stale.labels(self._group, operation).inc(stale)

    def fenced(self) -> None:
        """A sink has refused a token."""
        self._fenced.inc()

    def lost(self) -> None:
        """Every task is lost."""
        self._losses.inc()
