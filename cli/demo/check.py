"""The sink against the truth: what is missing, what is there too often, which sums are wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from cli.demo.plan import DELAYS, FLIGHTS
from cli.demo.truth import DELAY_COLUMNS, FLIGHT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.demo.plan import DemoSink
    from cli.demo.truth import Row, Truth


class Comparison(msgspec.Struct, frozen=True):
    """What the comparison found; `wrong_delays` counts the carrier-hours that differ from the truth."""

    rows_in: int
    rows_out: int
    lost: int
    duplicated: int
    delays: int
    wrong_delays: int

    @property
    def good(self) -> bool:
        """Whether the sink holds exactly the truth."""
        return not (self.lost or self.duplicated or self.wrong_delays) and self.rows_in == self.rows_out

    def __str__(self) -> str:
        """The demo's last line."""
        rows = f"rows in {self.rows_in}, rows out {self.rows_out}"
        return f"{rows}, lost {self.lost}, duplicated {self.duplicated}"


def compare(sink: DemoSink, truth: Truth) -> Comparison:
    """Count what a correct run would not have: each flight is compared as often as it occurs."""
    out = Counter(sink.rows(FLIGHTS, FLIGHT_COLUMNS))
    delays = Counter(sink.rows(DELAYS, DELAY_COLUMNS))
    return Comparison(
        rows_in=truth.rows,
        rows_out=out.total(),
        lost=(truth.flights - out).total(),
        duplicated=(out - truth.flights).total(),
        delays=len(truth.delays),
        wrong_delays=len(_wrong_keys(delays, truth.delays)),
    )


def _wrong_keys(found: Counter[Row], wanted: Mapping[tuple[str, int], Row]) -> set[object]:
    right = Counter(wanted.values())
    return {row[:2] for row in ((right - found) + (found - right))}
