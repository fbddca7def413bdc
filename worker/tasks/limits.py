"""Whether a query takes more than its definition allows, and what is to be done then: a rule without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from definition.limits import Limits
    from worker.query_engine import Progress, Stall


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit is exceeded, and was not at the last look: it counts once, until it is kept again."""

    name: str


@dataclass(frozen=True, slots=True)
class Tell:
    """What the task's cause is to say while it runs; None when every limit is kept again."""

    cause: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The query is to end: for a while, or until somebody has looked, wherever its task is then.

    `at_once` is that of one that hangs: its batch is not waited for, which its neighbours may be waiting for.
    """

    cause: str
    action: Literal["restart", "quarantine"]
    at_once: bool = False


Effect: TypeAlias = Exceeded | Tell | End


class LimitsWatch:
    """Looks at one query, from its start to its end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = dict(limits.given())
        self._batch_id: int | None = None
        self._since: float | None = None
        self._told: dict[str, str] = {}

    def look(
        self,
        progress: Progress | None,
        stall: Stall | None = None,
        heap_bytes: int | None = None,
        *,
        is_at_work: bool,
        now: float,
    ) -> list[Effect]:
        """What follows from the figures of this moment.

        Args:
            progress: the last finished batch, None before the first.
            stall: that it is silent for longer than its limit, or than is told without one.
            heap_bytes: what the task holds of the heap of its own JVM; None if that is not known.
            is_at_work: whether a batch is under way.
            now: the time, in seconds.
        """
        self._time_batch(progress, is_at_work=is_at_work, now=now)
        figures = dict(self._figures(progress, now))
        if heap_bytes is not None:
            heap_mb = heap_bytes / 2**20
            figures["heap_mb"] = (heap_mb, f"it holds {_shown(heap_mb)} MiB of its heap")
        if stall is not None:
            figures["hung_s"] = (stall.silent_s, str(stall))
        before, self._told = self._told, {}
        effects: list[Effect] = []
        ends: list[End] = []
        for name, limit in self._limits.items():
            value, said = figures.get(name, (0.0, ""))
            if value <= limit.max:
                continue
            self._told[name] = before.get(name, f"limits.{name}: {said}, more than {_shown(limit.max)}")
            if name not in before:
                effects.append(Exceeded(name))
                if limit.action != "warn":
                    ends.append(End(self._told[name], limit.action, at_once=name == "hung_s"))
        effects += sorted(ends, key=lambda end: end.action != "quarantine")[:1]
        if self._told != before:
            effects.append(Tell("; ".join(self._told.values()) or None))
        return effects

    def _time_batch(self, progress: Progress | None, *, is_at_work: bool, now: float) -> None:
        """A batch begins when the one before has ended, or when the query is first seen at work."""
        batch_id = None if progress is None else progress.batch_id
        if not is_at_work:
            self._since = None
        elif self._since is None or batch_id != self._batch_id:
            self._since = now
        self._batch_id = batch_id

    def _figures(self, progress: Progress | None, now: float) -> Iterator[tuple[str, tuple[float, str]]]:
        """Each figure that is known, and how it is told."""
        last_s = 0.0 if progress is None else progress.metrics.get("batch_ms", 0) / 1000
        under_way_s = 0.0 if self._since is None else now - self._since
        if under_way_s > last_s:
            yield "batch_s", (under_way_s, f"the batch under way has taken {_shown(under_way_s)} s")
        else:
            yield "batch_s", (last_s, f"batch {self._batch_id} took {_shown(last_s)} s")
        if progress is None:
            return
        rows = progress.metrics.get("rows", 0)
        yield "batch_rows", (rows, f"batch {self._batch_id} had {_shown(rows)} rows")
        if (state := progress.metrics.get("state")) is not None:
            state_rows, state_mb = state["rows"], state["memory_bytes"] / 2**20
            yield "state_rows", (state_rows, f"its state has {_shown(state_rows)} rows")
            yield "state_mb", (state_mb, f"its state takes {_shown(state_mb)} MiB of memory")


def _shown(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")
