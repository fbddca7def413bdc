"""Whether a query takes more than its definition allows, and what is to be done then: a rule without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from protocol.task_metrics import figure, figures
from worker.tasks.batch_time import BatchTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from definition.limits import Limit, Limits
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
    `has_kept` says whether it has finished a batch, since its start, within all limits that do more than
    warn.
    """

    cause: str
    action: Literal["restart", "quarantine"]
    at_once: bool = False
    has_kept: bool = False


Effect: TypeAlias = Exceeded | Tell | End


class _Figure(NamedTuple):
    """How much of a limit is taken, how that is told, and what of it may end the query, if not all of it."""

    value: float
    said: str
    own: float | None = None

    def may_end(self, limit: Limit) -> bool:
        return (self.value if self.own is None else self.own) > limit.max


class LimitsWatch:
    """Looks at one query, from its start to its end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = dict(limits.given())
        self._time = BatchTime()
        self._told: dict[str, str] = {}
        self._has_kept = False

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
            stall: that it is silent for longer than its limit, or than is told without one. The silence for
                which others may have to answer is told, and ends nothing.
            heap_bytes: what the task holds of the heap of its own JVM; None if that is not known.
            is_at_work: whether a batch is under way.
            now: the time, in seconds.
        """
        batch_id = None if progress is None else progress.batch_id
        self._time.look(batch_id, is_at_work=is_at_work, now=now)
        figures = dict(_own_figures(stall, heap_bytes))
        figures |= self._batch_figures(batch_id, {} if progress is None else progress.metrics)
        beyond = {name: figures[name] for name in self._limits if self._is_beyond(name, figures)}
        self._has_kept |= batch_id is not None and all(self._limits[name].action == "warn" for name in beyond)
        before, self._told = self._told, self._all_told(beyond)
        effects: list[Effect] = [Exceeded(name) for name in beyond if name not in before]
        effects += self._ends(beyond)
        if self._told != before:
            effects.append(Tell("; ".join(self._told.values()) or None))
        return effects

    def _is_beyond(self, name: str, figures: Mapping[str, _Figure]) -> bool:
        return name in figures and figures[name].value > self._limits[name].max

    def _all_told(self, beyond: Mapping[str, _Figure]) -> dict[str, str]:
        """Each limit with the figure that it was first exceeded by."""
        return {name: self._told.get(name) or self._cause(name, figure) for name, figure in beyond.items()}

    def _ends(self, beyond: Mapping[str, _Figure]) -> list[End]:
        """The most that is to be done, if anything is."""
        ends = [
            End(self._cause(name, figure), limit.action, name == "hung_s", self._has_kept)
            for name, figure in beyond.items()
            if (limit := self._limits[name]).action != "warn" and figure.may_end(limit)
        ]
        return sorted(ends, key=lambda end: end.action != "quarantine")[:1]

    def _cause(self, name: str, figure: _Figure) -> str:
        return f"limits.{name}: {figure.said}, more than {_shown(self._limits[name].max)}"

    def _batch_figures(
        self, batch_id: int | None, metrics: Mapping[str, Any]
    ) -> Iterator[tuple[str, _Figure]]:
        """Those of the batch under way, or of the last one, as far as they are known."""
        under_way_s = self._time.under_way_s
        last_s = self._time.last_s((figure(metrics, "batch_ms") or 0.0) / 1000)
        if under_way_s > last_s:
            yield "batch_s", _Figure(under_way_s, f"the batch under way has taken {_shown(under_way_s)} s")
        else:
            yield "batch_s", _Figure(last_s, f"batch {batch_id} took {_shown(last_s)} s")
        if (rows := figure(metrics, "rows")) is not None:
            yield "batch_rows", _Figure(rows, f"batch {batch_id} had {_shown(rows)} rows")
        state = figures(metrics, "state")
        if (rows := state.get("rows")) is not None:
            yield "state_rows", _Figure(rows, f"its state has {_shown(rows)} rows")
        if (state_bytes := state.get("memory_bytes")) is not None:
            state_mb = state_bytes / 2**20
            yield "state_mb", _Figure(state_mb, f"its state takes {_shown(state_mb)} MiB of memory")


def _own_figures(stall: Stall | None, heap_bytes: int | None) -> Iterator[tuple[str, _Figure]]:
    """What is known of the query whichever batch it is at."""
    if heap_bytes is not None:
        heap_mb = heap_bytes / 2**20
        yield "heap_mb", _Figure(heap_mb, f"it holds {_shown(heap_mb)} MiB of its heap")
    if stall is not None:
        yield "hung_s", _Figure(stall.silent_s, str(stall), stall.own_s)


def _shown(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")
