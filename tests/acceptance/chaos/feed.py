"""What gives the flows their rows, portion by portion."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tests.acceptance.chaos.flows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.rows import Rows

BATCHES_A_PORTION = 3


class Feed(ABC):
    """Rows with numbers of their own, by flow; when the data ends, it begins anew with new numbers."""

    worker_flags: Sequence[str] = ()
    """What a worker has to be started with to read it."""

    def __init__(self, chosen: Iterable[Flow], written: Rows) -> None:
        self.flows = list(chosen)
        self._written = written
        self._rows = {flow.name: itertools.cycle(rows) for flow, rows in rows_of(self.flows)}

    def add(self, only: Flow | None = None) -> None:
        """A portion for every flow, or for one."""
        for _ in range(BATCHES_A_PORTION):
            for flow in [only] if only else self.flows:
                rows = list(itertools.islice(self._rows[flow.name], flow.table.rows_a_batch))
                first = len(flow.fed)
                self._put(
                    flow, {at: self._written.line(flow, at, *row) for at, row in enumerate(rows, first)}
                )
                flow.fed.extend(key for key, _ in rows)

    @abstractmethod
    def open(self) -> None:
        """Make ready to be read from."""

    @abstractmethod
    def close(self) -> None:
        """End what was begun."""

    @abstractmethod
    def source(self, flow: Flow) -> dict[str, Any]:
        """Where the flow's task is to read, as its definition says it."""

    @abstractmethod
    def forget(self, flow: Flow) -> None:
        """Keep no more than the last two portions, where that can be: what a reset has to be read again."""

    @abstractmethod
    def check(self) -> None:
        """Raises if rows have not got where they can be read from, and never will."""

    @abstractmethod
    def summary(self) -> str:
        """What it has come to, for people."""

    @abstractmethod
    def _put(self, flow: Flow, lines: Mapping[int, bytes]) -> None:
        """The rows that are to come next, by their numbers."""
