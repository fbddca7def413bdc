"""How many rows of a task did not go to its sink (protocol §6)."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec


class LeftOut(msgspec.Struct, frozen=True):
    """How many rows were left out: dropped or put aside, each once, and by what they count for.

    A row that violates two expectations counts for both in `reasons`; it is put aside if one of them says so.
    """

    dropped: int = 0
    quarantined: int = 0
    reasons: dict[str, int] = {}

    def __add__(self, other: LeftOut) -> LeftOut:
        reasons = Counter(self.reasons)
        reasons.update(other.reasons)
        return LeftOut(self.dropped + other.dropped, self.quarantined + other.quarantined, dict(reasons))

    def __sub__(self, before: LeftOut) -> LeftOut:
        """What was added to `before`, which is a part of it."""
        reasons = Counter(self.reasons)
        reasons.subtract(before.reasons)
        added = {name: rows for name, rows in reasons.items() if rows}
        return LeftOut(self.dropped - before.dropped, self.quarantined - before.quarantined, added)

    @property
    def total(self) -> int:
        """All rows that do not go to the sink."""
        return self.dropped + self.quarantined

    def __bool__(self) -> bool:
        """Whether there were any."""
        return bool(self.dropped or self.quarantined)


NOTHING: Final = LeftOut()
