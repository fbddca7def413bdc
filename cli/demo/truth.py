"""What must stand in the sink at the end, computed in plain Python from the package's own file."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cli.demo.data import flights

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = tuple[int | str | None, ...]

FLIGHT_COLUMNS: Final = (
    "year",
    "month",
    "day",
    "sched_dep_time",
    "dep_delay",
    "arr_delay",
    "carrier",
    "flight",
    "origin",
    "dest",
)
TEXT_COLUMNS: Final = frozenset({"carrier", "origin", "dest"})
DELAY_COLUMNS: Final = ("carrier", "hour", "flights", "departed", "dep_delay", "arr_delay")


@dataclass(frozen=True, slots=True)
class Truth:
    """Every flight, as often as it is there, and the rows of `delays` by carrier and hour."""

    flights: Counter[Row]
    delays: Mapping[tuple[str, int], Row]

    @property
    def rows(self) -> int:
        """How many flights there are."""
        return self.flights.total()


def truth(limit: int) -> Truth:
    """The truth about the first `limit` flights."""
    rows: Counter[Row] = Counter()
    delays: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for flight in flights(limit):
        rows[tuple(_value(column, flight[column]) for column in FLIGHT_COLUMNS)] += 1
        sums = delays[flight["carrier"], int(flight["hour"])]
        sums[:] = map(operator.add, sums, _contribution(flight))
    return Truth(rows, {key: (*key, *sums) for key, sums in delays.items()})


def _contribution(flight: Mapping[str, str]) -> tuple[int, int, int, int]:
    """What one flight adds to its carrier and hour; one that never left or arrived adds no delay."""
    departed, arrived = _number(flight["dep_delay"]), _number(flight["arr_delay"])
    return 1, int(departed is not None), departed or 0, arrived or 0


def _value(column: str, text: str) -> int | str | None:
    return text if column in TEXT_COLUMNS else _number(text)


def _number(text: str) -> int | None:
    return None if text == "NA" else int(text)
