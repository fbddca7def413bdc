"""What the batches of a task have cost, and what of its rows came too late (docs/monitoring.md)."""

from __future__ import annotations

from typing import Final

import msgspec


class Phases(msgspec.Struct, frozen=True):
    """Where the time of batches went, in milliseconds.

    `reading` is asking the sources what there is; `writing` reads, computes and writes the rows, which Spark
    does as one; `commit` keeps Spark's own logs.
    """

    planning: int = 0
    reading: int = 0
    writing: int = 0
    commit: int = 0

    def __add__(self, other: Phases) -> Phases:
        return Phases(
            self.planning + other.planning,
            self.reading + other.reading,
            self.writing + other.writing,
            self.commit + other.commit,
        )

    @property
    def total(self) -> int:
        """All of it."""
        return self.planning + self.reading + self.writing + self.commit


class Costs(msgspec.Struct, frozen=True):
    """Added up over batches; None is what does not apply to a task, or nobody can tell of it.

    `late_batches` took longer than their trigger's interval, `late_rows` were dropped because they were older
    than the watermark, `spilled_bytes` were written to disk for want of memory.
    """

    phases: Phases = Phases()
    late_batches: int | None = None
    late_rows: int | None = None
    spilled_bytes: int | None = None

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.phases + other.phases,
            _sum(self.late_batches, other.late_batches),
            _sum(self.late_rows, other.late_rows),
            _sum(self.spilled_bytes, other.spilled_bytes),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


NO_COSTS: Final = Costs()
"""Before the first batch."""
