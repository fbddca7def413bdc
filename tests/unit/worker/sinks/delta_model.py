"""A Delta table in memory that is written to by owners whose steps are put into any order.

It keeps to what is told of Delta in docs/exactly-once.md: a transaction sees the table as it was when it
began, a commit fails if the number that it has read was set since, and a write whose number is not above the
one that it sees is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from greenlet import getcurrent, greenlet

from worker.sinks.delta.marks import NONE, Note, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from worker.sinks.base import Answer, Field
    from worker.sinks.delta.port import Layout, Way
    from worker.sinks.fence import Mark

APP = "sparkherd/g/t"
_ids = count()


class ConcurrentTransactionError(Exception):
    """What Delta raises when a number that was read has been set since."""


def step() -> None:
    """Where another owner may come in between; outside of `interleaved` nobody does."""
    parent = getcurrent().parent
    if parent is not None:
        parent.switch()


def interleaved(order: Sequence[int], *owners: greenlet) -> None:
    """Run the owners step by step as `order` says, and then the rest of each, one after the other."""
    for at in order:
        if not owners[at].dead:
            owners[at].switch()
    for owner in owners:
        while not owner.dead:
            owner.switch()


@dataclass
class Stored:
    """The table that all owners write to.

    `commits` counts those that have set the task's number, `length` those that are in its log.
    """

    id: str = field(default_factory=lambda: f"id{next(_ids)}")
    versions: dict[str, int] = field(default_factory=dict)
    note: Note | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    commits: int = 0
    length: int = 0
    columns: tuple[Mapping[str, Any], ...] = ({"name": "v", "type": "string"},)
    log_store: str = "sparkherd.delta.LinkLogStore"
    configuration: dict[str, str] = field(default_factory=dict)


class ModelTable:
    """One owner's view of the stored table, as `worker.sinks.delta.port.FencedTable`.

    Args:
        stored: what all share; None stands for a table that is not there.
        checked: whether commits compare the number, as Delta does.
    """

    place = "/model"

    def __init__(self, stored: Stored, *, checked: bool = True) -> None:
        self.stored: Stored | None = stored
        self._checked = checked

    def create(self) -> None:
        if self.stored is None:
            self.stored = Stored(columns=())

    def look(self, depth: int) -> Seen | None:
        del depth
        step()
        return None if (now := self.stored) is None else seen(now)

    def swap(
        self, expected: int, versions: Mapping[str, int], note: Note, layout: Layout | None = None
    ) -> bool:
        step()
        assert self.stored is not None
        begun_at, found = self.stored.commits, self.stored.versions.get(APP, NONE)
        if found != expected:
            return False
        step()
        if self._checked and self.stored.commits != begun_at:
            return False
        self._commit(versions, note)
        if layout is not None:
            self.stored.columns = tuple({"name": f.name, "type": f.type} for f in layout.fields)
        return True

    def cluster(self, columns: Sequence[str]) -> None:
        del columns

    def add(self, fields: Sequence[Field]) -> None:
        assert self.stored is not None
        self.stored.columns += tuple({"name": f.name, "type": f.type} for f in fields)

    def write(self, frame: DataFrame, way: Way, note: Note) -> None:
        step()
        assert self.stored is not None
        begun_at = self.stored.commits
        if self.stored.versions.get(APP, NONE) >= note.version:
            return
        step()
        if self._checked and self.stored.commits != begun_at:
            raise ConcurrentTransactionError
        rows = cast("list[str]", frame)
        self.stored.rows = [*(() if way.how == "overwrite" else self.stored.rows), *rows]
        self._commit({APP: note.version}, note, numOutputRows=str(len(rows)))

    def _commit(self, versions: Mapping[str, int], note: Note, **metrics: str) -> None:
        assert self.stored is not None
        self.stored.versions |= versions
        self.stored.note, self.stored.metrics = note, metrics
        self.stored.commits += 1
        self.stored.length += 1


def seen(now: Stored) -> Seen:
    """What a look finds."""
    return Seen(
        table=now.id,
        path="file:/model",
        log_store=now.log_store,
        versions=dict(now.versions),
        note=now.note,
        metrics=now.metrics,
        columns=now.columns,
        configuration=dict(now.configuration),
        at=now.length,
    )


class ModelBatch:
    """One batch, whose rows are its own name."""

    partitions = 1

    def __init__(self, mark: Mark, rows: Sequence[str]) -> None:
        self.mark = mark
        self.rows = list(rows)
        self.was_discarded = False

    def hand_over(self, use: Callable[[Any], Answer]) -> Answer:
        answer = use(self.rows)
        step()
        return answer

    def discard(self) -> None:
        self.was_discarded = True


def remade(stored: Stored) -> None:
    """Drop the table and make one of the same columns at its place."""
    fresh = replace(Stored(), columns=stored.columns)
    stored.__dict__.update(fresh.__dict__)
