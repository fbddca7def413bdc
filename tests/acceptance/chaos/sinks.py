"""What the flows' rows are put into, and what is there afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tests.acceptance.chaos.balance import Balance, of_counts, of_rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from tests.acceptance.chaos.flows import Flow


class Sinks(ABC):
    """Tables, one a flow, in one database or several; read without Spark."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self.flows = list(flows)

    @property
    def databases(self) -> list[str]:
        """Their names, as in the flows."""
        return list(dict.fromkeys(flow.database for flow in self.flows))

    def worker_flags(self, worker: str) -> Sequence[str]:
        """What a worker has to be started with to write there."""
        del worker
        return ()

    def has_all_of(self, flow: Flow) -> bool:
        """Whether all rows that were fed have arrived; one that is there twice stands for no other."""
        return self.arrived(flow) >= len(flow.due)

    def rules(self, flow: Flow) -> dict[str, Any]:
        """What else the definition of the flow's task says of its rows."""
        del flow
        return {}

    def due(self, flow: Flow) -> dict[str, int]:
        """How many rows were fed, by the place where they have to be."""
        return {flow.database: len(flow.fed)}

    def balances(self, flow: Flow) -> dict[str, Balance]:
        """By these places."""
        return {flow.database: self.balance(flow)}

    def balance(self, flow: Flow) -> Balance:
        """Each row, or each key's count, against what was fed."""
        return of_counts(self.counts(flow), flow) if flow.counts else of_rows(self.rows(flow), flow)

    @abstractmethod
    def definition(self, flow: Flow) -> dict[str, Any]:
        """The sink of the flow's task, as its definition says it."""

    @abstractmethod
    def arrived(self, flow: Flow) -> int:
        """How many of the flow's rows are there, or are counted."""

    @abstractmethod
    def rows(self, flow: Flow) -> Counter[tuple[int, str]]:
        """How often each row is there, by its number and key."""

    @abstractmethod
    def counts(self, flow: Flow) -> Mapping[str, tuple[int, int]]:
        """The count of rows of each key, and the sum of their numbers."""

    @abstractmethod
    def summary(self) -> str:
        """What it has come to, for people; empty if there is nothing to say."""

    @abstractmethod
    def close(self) -> None:
        """Let go of them."""
