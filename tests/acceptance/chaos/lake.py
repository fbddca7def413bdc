"""Tables of a format whose commits can be held, where each has two halves."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from tests.acceptance.chaos.flows import FLIGHTS, WEATHER, Flow
from tests.acceptance.chaos.sinks import Sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tests.acceptance.chaos.plan import Moment

JARS: Final = Path(__file__).parents[3] / "jars" / "spark"


class Work(Enum):
    """What a commit of the fenced sinks brings into a table."""

    BATCH = "batch"
    CLAIM = "claim"
    REPLAY = "replay"


MADE: Final = "made"
REFUSED: Final = "refused"


class CommitHold(Protocol):
    """Holds the next such commit of one worker into one table, from now on."""

    @property
    def reached(self) -> bool:
        """Whether a commit is held."""
        ...

    @property
    def outcome(self) -> str | None:
        """What became of the commit when it went on; None as long as that is not known."""
        ...

    def release(self, *, lost: bool = False) -> None:
        """Hold nothing any more. What is `lost` goes no further: whoever has begun it is dead."""
        ...


class Lake(Sinks):
    """Four tables: two are appended to, of two each batch replaces rows by key, or the whole.

    Spark's own sinks replace the whole only.
    """

    def __init__(self, name: str, *, fenced: bool) -> None:
        """`name` is the format's."""
        self.name = name
        self.format = name if fenced else f"{name}_unfenced"
        self.fenced = fenced
        self._read: dict[str, tuple[Hashable, Any]] = {}
        super().__init__(
            [
                Flow(FLIGHTS, "EWR", name, "append"),
                Flow(FLIGHTS, "LGA", name, "upsert" if fenced else "overwrite"),
                Flow(WEATHER, "JFK", name, "append"),
                Flow(WEATHER, "LGA", name, "overwrite"),
            ]
        )

    @abstractmethod
    def hold(self, worker: str, flow: Flow, moment: Moment, work: Work) -> CommitHold:
        """Have the worker's next commit of this kind held there."""

    @abstractmethod
    def empty(self, flow: Flow) -> None:
        """Delete all rows, as somebody does who has reset the task."""

    @abstractmethod
    def look(self, flow: Flow) -> tuple[Hashable, Callable[[], Any]]:
        """The version of the flow's table, and what reads that into a table of Arrow's."""

    def mode(self, flow: Flow) -> dict[str, Any]:
        """The fenced sinks' options for what becomes of rows that are there."""
        if not self.fenced or not flow.counts:
            return {}
        return {"mode": flow.mode, **({"key": ["key"]} if flow.mode == "upsert" else {})}

    def arrived(self, flow: Flow) -> int:
        """By what is there, each row once."""
        if flow.counts:
            return sum(count for count, _ in self.counts(flow).values())
        return len(self.rows(flow))

    def rows(self, flow: Flow) -> Counter[tuple[int, str]]:
        """All of them."""
        found: Counter[tuple[int, str]] = self.newest(flow.name, self.look(flow), _rows)
        return found

    def counts(self, flow: Flow) -> Mapping[str, tuple[int, int]]:
        """All of them; a key that is there in two rows has the sum of their counts."""
        found: dict[str, tuple[int, int]] = self.newest(flow.name, self.look(flow), _counts)
        return found

    def newest(
        self,
        table: str,
        look: tuple[Hashable, Callable[[], Any]],
        take: Callable[[list[dict[str, Any]]], Any],
    ) -> Any:
        """What is made of the rows of the newest version of a table, which are read once."""
        version, read = look
        if self._read.get(table, (None,))[0] != version:
            self._read[table] = version, take(read().to_pylist())
        return self._read[table][1]


def _rows(found: list[dict[str, Any]]) -> Counter[tuple[int, str]]:
    return Counter((row["id"], row["key"]) for row in found)


def _counts(found: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for row in found:
        n, ids = counts.get(row["key"], (0, 0))
        counts[row["key"]] = (n + row["n"], ids + row["ids"])
    return counts
