"""What is left out of a batch: rows that are dropped, and rows that are put aside (protocol §6); rules.

A row that is put aside goes to the quarantine of its task, with what it takes to play it again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from worker.left_out import LeftOut
from worker.masking import masked_json, masked_text
from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from worker.sinks.fence import Mark

Reason = Literal["unreadable", "violation", "refused"]
"""Why a row is put aside: it cannot be taken apart, it violates an expectation, or the sink refuses it."""
Form = Literal["kafka", "line", "row"]
"""What its bytes are: a value of Kafka's, a line of a file, or a row of the query's result as JSON."""

RATIO_FROM: Final = 100
"""Rows that may be put aside of a batch however small it is: of three rows, one is no sign of anything."""
MOST_BYTES: Final = 256 * 2**20
"""Of all rows of a batch that are put aside: they pass through the driver."""
SHOWN_ROWS: Final = 3
_MOST_SHOWN: Final = 80
"""Characters of a row in a cause."""


class Aside(NamedTuple):
    """A row that is put aside.

    Args:
        reason: as `Reason` has it.
        names: the expectations that it violates; else what is wrong with it in one word, or a few.
        error: what is wrong, for a person.
        form: what `raw` is.
        raw: the row as it came.
        origin: where it came from, as far as that is known.
        public_error: what anybody may read of `error`, if that is less.
    """

    reason: Reason
    names: tuple[str, ...]
    error: str
    form: Form
    raw: bytes
    origin: Mapping[str, object] = {}
    public_error: str | None = None

    @property
    def counted_as(self) -> tuple[str, ...]:
        """What it counts for: each expectation that it violates, or why else it was put aside."""
        return self.names if self.reason == "violation" else (self.reason,)

    @property
    def size(self) -> int:
        """Its bytes on their way through the driver, or nearly so; a key and headers are in `origin`."""
        return len(self.raw) + len(self.error) + sum(len(str(value)) for value in self.origin.values())

    @property
    def told(self) -> str:
        """What is wrong, as anybody may read it."""
        return self.error if self.public_error is None else self.public_error

    @property
    def shown(self) -> str:
        """The row as anybody may see it: where it came from, or its shape."""
        if self.origin:
            return ", ".join(f"{name} {value}" for name, value in self.origin.items() if name in _PLACES)
        text = (masked_json if self.form == "row" else masked_text)(self.raw.decode(errors="replace"))
        return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


_PLACES: Final = ("topic", "partition", "offset", "file", "line")


def counted(rows: Iterable[Aside]) -> LeftOut:
    """What rows that are put aside count for."""
    reasons: Counter[str] = Counter()
    number = 0
    for row in rows:
        number += 1
        reasons.update(row.counted_as)
    return LeftOut(quarantined=number, reasons=dict(reasons))


def are_too_large(aside: Iterable[Aside]) -> bool:
    """Whether rows have more bytes than a batch may put aside."""
    return sum(row.size for row in aside) > MOST_BYTES


class Limits(NamedTuple):
    """How many rows of a batch may be put aside, before something else is wrong than a row.

    Args:
        rows: `max_quarantined_per_batch`.
        ratio: `max_quarantined_ratio`, of all rows of a batch; holds above `RATIO_FROM` rows.
    """

    rows: int
    ratio: float

    def left(self, number: int, total: int) -> int:
        """How many more rows may be put aside.

        Args:
            number: of those that are.
            total: of the rows of the batch.
        """
        return max(min(self.rows, max(RATIO_FROM, int(self.ratio * total))) - number, 0)

    def require(self, aside: Sequence[Aside], number: int, total: int, mark: Mark) -> None:
        """Refuse a batch of which too much would be put aside.

        Args:
            aside: rows that would be: all of them, unless they are too many or too large.
            number: of all that would be.
            total: of the rows of the batch.
            mark: the batch.

        Raises:
            SinkError: it is refused; names what is wrong with most of the rows, and three of them.
        """
        fault = self._fault(aside, number, total)
        if fault is not None:
            said = f"batch {mark.batch_id}: {number:,} of {total:,} rows would be put aside, {fault}"
            raise SinkError(f"{said}: {_examples(aside)}")

    def _fault(self, aside: Sequence[Aside], number: int, total: int) -> str | None:
        if number > self.rows:
            return f"more than quarantine.max_quarantined_per_batch ({self.rows:,}) allows"
        if number > RATIO_FROM and number > self.ratio * total:
            return f"more than quarantine.max_quarantined_ratio ({self.ratio:g}) allows"
        if len(aside) < number or are_too_large(aside):
            return f"which have more than {MOST_BYTES:,} bytes"
        return None


class Beside(NamedTuple):
    """How a sink puts rows aside in the transaction that writes the others: its database has the quarantine.

    Args:
        table: where they go.
        limits: how many may.
        takes_refused: whether rows that the database refuses are put aside, too.
    """

    table: str
    limits: Limits
    takes_refused: bool = False


def _examples(aside: Sequence[Aside]) -> str:
    """The error that most rows have, and three of those rows."""
    if not aside:
        return "no row of them was kept"
    [(error, _)] = Counter(row.told for row in aside).most_common(1)
    rows = [row.shown for row in aside if row.told == error][:SHOWN_ROWS]
    return f"{error}; such as {'; '.join(rows)}"
