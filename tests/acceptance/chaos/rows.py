"""How the rows of a feed are written, and so how a task has to read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.acceptance.chaos.flows import Flow

NULL = "NA"
"""How the tables write what is not known."""


class Rows(ABC):
    """One line, or one value of Kafka's, a row."""

    @abstractmethod
    def payload(self, flow: Flow) -> dict[str, Any]:
        """Format, schema and options, as a definition says them."""

    @abstractmethod
    def line(self, flow: Flow, number: int, key: str, value: str) -> bytes:
        """The flow's next row; without a line break."""


class CsvRows(Rows):
    """Good ones, all of them."""

    def payload(self, flow: Flow) -> dict[str, Any]:
        """As the tables themselves are written."""
        return {"format": "csv", "schema": flow.table.schema, "options": {"nullValue": NULL}}

    def line(self, flow: Flow, number: int, key: str, value: str) -> bytes:
        """Nothing in the tables needs quotes."""
        del flow
        return f"{number},{key},{value}".encode()
