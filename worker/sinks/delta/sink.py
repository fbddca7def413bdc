"""The fenced Delta sink: a batch's rows and the task's number are one commit of the table, or none.

Delta compares the number in the commit: a transaction that has read it fails if another commit has set it
since. So a claim, which is such a transaction, goes before or after each batch of an older owner, never
beside it. A write that begins after the claim is passed over by Delta, in silence; that it is in the table is
therefore looked up after each write, by a mark that no other write has. Nothing but finding it lets the
batch be taken for written.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self
from uuid import uuid4

from worker.sinks.base import Finding, Sink, Written
from worker.sinks.delta.columns import (
    field_faults,
    merge_faults,
    missing,
    partition_columns,
    require_clusterable,
    table_faults,
    text_folders,
)
from worker.sinks.delta.constraints import conditions_of
from worker.sinks.delta.marks import (
    BATCH_BITS,
    NONE,
    Note,
    app_id,
    begun,
    defined,
    is_to_be_clustered,
    lost,
    made_again,
    row_of,
    rows_in,
    shortened,
    version_of,
    versions_of,
)
from worker.sinks.delta.places import mode_fault, place_fault, table_fault
from worker.sinks.delta.port import Layout, Way
from worker.sinks.errors import BatchRefusedError, SchemaError, SinkError
from worker.sinks.fence import FenceRow, Verdict, admits, fenced, judge, raised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from definition.sinks.delta import DeltaOptions
    from worker.sinks.base import Batch, Condition, Field, SinkTask
    from worker.sinks.delta.marks import Seen
    from worker.sinks.delta.port import FencedTable
    from worker.sinks.fence import Owner

_TRIES: Final = 100
"""At a commit of our own that others come before; each of them has done something then."""
_DEPTH: Final = 1000
"""How many commits back a claim looks for what stands beside the number. What is there is not needed for
anything but to notice an older copy of the checkpoint, and to count rows."""
_NEAR: Final = 100
"""How many commits others may have made between a write and the look at what became of it."""


class DeltaSink(Sink):
    """Rows into one table of Delta Lake: appended, upserted by key, or the whole of it replaced."""

    def __init__(
        self,
        table: FencedTable,
        owner: Owner,
        options: DeltaOptions,
        partition_by: Sequence[str] = (),
    ) -> None:
        self._table = table
        self._owner = owner
        self._options = options
        self._partition_by = partition_by
        self._way = Way(options.mode, options.key)
        self._row = FenceRow(owner.token, owner.resets)
        self._id: str | None = None
        self._at = NONE
        self._conditions: Sequence[Condition] = ()

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """The table is looked at when it is claimed."""
        from worker.sinks.delta.spark_table import SparkTable  # noqa: PLC0415 - the rules need no Spark

        options, definition = task.options, task.definition
        if options.cluster_by and definition.partition_by:
            raise SinkError("sink.options.cluster_by does not go with sink.partition_by: give one of them")
        table = SparkTable(task.session, app_id(task.owner), options.path, definition.table)
        return cls(table, task.owner, options, definition.partition_by)

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """By the columns that the table has."""
        sink = cls.open(task)
        seen = sink._table.look(0)  # noqa: SLF001 - of this class
        for fault in sink._field_faults(fields):  # noqa: SLF001 - of this class
            yield Finding("sink", fault)
        if seen is None:
            shown = f"the table {sink.place} is not there: it would be made"
            yield Finding("sink", shown, is_fine=True)
            return
        for fault in sink._faults(fields, seen):  # noqa: SLF001 - of this class
            yield Finding("sink", fault)

    @property
    def place(self) -> str:
        """The table's path or name."""
        return self._table.place

    def claim(self) -> FenceRow:
        """Raise the number to the owner's token, in a transaction that reads it."""
        self._table.create()
        for _ in range(_TRIES):
            seen = self._seen(_DEPTH)
            _require(place_fault(seen.path, seen.log_store) or table_fault(seen))
            row = raised(row_of(seen, self._owner) or FenceRow(0), self._owner)
            if self._swap(seen, row, versions_of(row, self._owner)):
                self._row, self._id, self._at = row, seen.table, seen.at
                return row
        raise self._crowded()

    def newest(self) -> FenceRow | None:
        """By the task's number; None also as long as there is no Spark that could be asked."""
        return row_of(self._table.look(_DEPTH), self._owner)

    def prepare(self, fields: Sequence[Field]) -> None:
        """Give the table its columns, or check those that it has."""
        for fault in self._field_faults(fields):
            raise SchemaError(fault)
        seen = self._defined(fields)
        for fault in self._faults(fields, seen):
            raise SchemaError(fault)
        if added := missing(fields, seen):
            self._table.add(added)
        self._conditions = conditions_of(fields, seen)
        self._way = self._way._replace(folders=text_folders(fields, self._options.key, seen))

    def conditions(self) -> Sequence[Condition]:
        """The constraints of the table, as it was when it was prepared."""
        return self._conditions

    def write(self, batch: Batch) -> Written:
        """Write the batch unless it is there; that it is in the table afterwards is seen, not believed."""
        if self._id is None:
            raise SinkError("the sink was not claimed")
        if judge(self._row, self._owner, batch.mark) is not Verdict.WRITE:
            self._row = self._stored()
            if not admits(self._row, self._owner, batch.mark):
                batch.discard()
                return Written(0, self._row.rows, duplicate=True)
        if self._row.last is None:
            self._begin(batch.mark.checkpoint)
        return self._put(batch)

    def close(self) -> None:
        """Nothing is open between two batches."""

    @property
    def _named(self) -> dict[str, Sequence[str]]:
        return {
            "sink.options.key": self._options.key,
            "sink.options.cluster_by": self._options.cluster_by,
            "sink.partition_by": self._partition_by,
        }

    def _put(self, batch: Batch) -> Written:
        """One write, with a mark of its own."""
        mark = batch.mark
        after = replace(self._row, last=mark)
        note = self._note(self._id or "", after, mark.plan, attempt=uuid4().hex)

        def write(frame: DataFrame) -> Seen:
            self._table.write(frame, self._way, note)
            return self._require_ours(note)

        with self._losing_to_newer():
            rows = rows_in(batch.hand_over(write).metrics)
        self._row = replace(after, rows=self._row.rows + rows)
        return Written(rows, self._row.rows)

    def _require_ours(self, note: Note) -> Seen:
        """Delta passes over what is too old and says nothing: see that the rows are there, by this write.

        A table that has been told meanwhile to forget numbers is refused as well: the batch is in it, and the
        next claim would be told so, but no further one goes there.
        """
        seen = self._seen(_NEAR)
        stored = seen.version(self._owner)
        if seen.table != note.table:
            raise made_again(self._owner, self.place)
        if stored >> BATCH_BITS > self._owner.token:
            raise fenced(self._owner, FenceRow(stored >> BATCH_BITS, self._row.resets))
        _require(table_fault(seen))
        if stored == NONE:
            raise made_again(self._owner, self.place)
        self._require_longer(seen)
        if stored != note.version or seen.note is None or seen.note.attempt != note.attempt:
            raise SinkError(
                f"{self._owner}: the batch was not written, or by another attempt: the table {self.place} has"
                f" {stored} for the task, and this attempt's is {note.version}"
            )
        return seen

    def _require_longer(self, seen: Seen) -> None:
        """A log that is no longer after a write has lost its end: where a batch was, this one is.

        Whoever comes next could not see that any more, so it is written down in the table.
        """
        if seen.at <= self._at:
            self._swap(seen, self._row, lost(row_of(seen, self._owner) or self._row, self._owner))
            raise shortened(self._owner, self.place)
        self._at = seen.at

    @contextmanager
    def _losing_to_newer(self) -> Iterator[None]:
        """Whatever fails because a newer owner was here fails for that reason."""
        try:
            yield
        except (SinkError, BatchRefusedError):
            raise
        except Exception:
            self._require_newest()
            raise

    def _require_newest(self) -> None:
        """Raise if the table knows a newer owner, is another one or gone; if it cannot be asked, it does not.

        Raises:
            FencedError: a newer owner was here.
            SinkError: the table is not the one that was claimed.
        """
        try:
            seen = self._table.look(_DEPTH)
        except Exception:  # noqa: BLE001 - what the batch failed with says more
            return
        stored = self._known(seen)
        if stored.token > self._owner.token:
            raise fenced(self._owner, stored)

    def _begin(self, checkpoint: str) -> None:
        """Write down which checkpoint the batches to come are from, for as long as the table is there."""
        for _ in range(_TRIES):
            seen = self._own()
            if self._swap(seen, self._row, begun(seen, self._row, self._owner, checkpoint)):
                return
        raise self._crowded()

    def _defined(self, fields: Sequence[Field]) -> Seen:
        """The table with columns: those it has, or the query's if it has none."""
        for _ in range(_TRIES):
            seen = self._own()
            if seen.columns:
                return self._clustered(fields, seen)
            require_clusterable(fields, self._options.cluster_by)
            layout = Layout(fields, partition_columns(fields, self._partition_by))
            versions = defined(self._row, self._owner, is_clustered=bool(self._options.cluster_by))
            if self._swap(seen, self._row, versions, layout):
                return self._clustered(fields, self._own())
        raise self._crowded()

    def _clustered(self, fields: Sequence[Field], seen: Seen) -> Seen:
        """The table, clustered if that is still to be done: Delta takes it in a commit of its own."""
        is_new = self._row.last is None and not seen.partition_by
        if not (self._options.cluster_by and is_new and is_to_be_clustered(seen, self._owner)):
            return seen
        require_clusterable(fields, self._options.cluster_by)
        self._table.cluster(self._options.cluster_by)
        return self._own()

    def _own(self) -> Seen:
        """The table, if it is the one that was claimed and nobody else has claimed it since."""
        seen = self._seen(_NEAR)
        if seen.table != self._id:
            raise made_again(self._owner, self.place)
        stored = row_of(seen, self._owner) or FenceRow(0)
        if stored.token > self._owner.token:
            raise fenced(self._owner, stored)
        return seen

    def _stored(self) -> FenceRow:
        return self._known(self._table.look(_DEPTH))

    def _known(self, seen: Seen | None) -> FenceRow:
        """The fence row in the table that was claimed, as it was looked at."""
        if seen is None:
            raise self._gone()
        if seen.table != self._id:
            raise made_again(self._owner, self.place)
        return row_of(seen, self._owner) or FenceRow(0)

    def _seen(self, depth: int) -> Seen:
        """The table.

        Raises:
            SinkError: it is gone.
        """
        if (seen := self._table.look(depth)) is None:
            raise self._gone()
        return seen

    def _gone(self) -> SinkError:
        return SinkError(
            f"{self._owner}: the table {self.place} is gone, or its _delta_log: bring it back, or reset"
            " the task to have all written again"
        )

    def _swap(
        self, seen: Seen, row: FenceRow, versions: dict[str, int], layout: Layout | None = None
    ) -> bool:
        plan = None if row.last is None else row.last.plan
        note = self._note(seen.table, row, plan)
        return self._table.swap(seen.version(self._owner), versions, note, layout)

    def _note(self, table: str, row: FenceRow, plan: str | None, attempt: str | None = None) -> Note:
        task = f"{self._owner.group}/{self._owner.task}"
        return Note(
            sparkherd=task, version=version_of(row), table=table, rows=row.rows, plan=plan, attempt=attempt
        )

    def _field_faults(self, fields: Sequence[Field]) -> Iterator[str]:
        """What no table could take."""
        yield from field_faults(fields, self._named)
        yield from merge_faults(fields, self._options.key)

    def _faults(self, fields: Sequence[Field], seen: Seen) -> Iterator[str]:
        """Why the table that is there cannot be written to."""
        mode = self._options.mode
        for fault in (place_fault(seen.path, seen.log_store), table_fault(seen), mode_fault(seen, mode)):
            if fault is not None:
                yield fault
        if seen.columns:
            may_add = self._options.merge_schema
            appends = mode != "upsert"
            yield from table_faults(fields, seen, self._partition_by, may_add=may_add, appends=appends)

    def _crowded(self) -> SinkError:
        return SinkError(f"{self._owner}: others have come before each of {_TRIES} commits to {self.place}")


def _require(fault: str | None) -> None:
    if fault is not None:
        raise SinkError(fault)
