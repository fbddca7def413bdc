"""The fenced SQL sink: a batch's rows and the fence row move in one transaction, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from definition.tables import read_table_name
from worker.left_out import NOTHING
from worker.sinks import staging_postgres, staging_sqlite
from worker.sinks.aside import counted
from worker.sinks.base import Sifted, Sink, Written
from worker.sinks.bisection import Search
from worker.sinks.database import (
    connect,
    end_older_sessions,
    is_server,
    place,
    plain_sessions,
    transaction,
)
from worker.sinks.errors import SinkError
from worker.sinks.fence import Verdict, judge
from worker.sinks.fence_rows import claim_fence, enter_fence, newest_row
from worker.sinks.inspection import inspect_table
from worker.sinks.parts import raise_faults, whole
from worker.sinks.quarantine.beside import QuarantineTable
from worker.sinks.schemas import creatable, current_schema
from worker.sinks.spare_connection import SpareConnection
from worker.sinks.sql_target import SqlTarget
from worker.sinks.table import describe_table, ensure_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from definition.sinks.sql import SqlOptions
    from worker.sinks.aside import Aside, Beside, Limits
    from worker.sinks.base import Batch, Field, Finding, SinkTask
    from worker.sinks.fence import FenceRow, Mark, Owner
    from worker.sinks.fence_table import FenceTable
    from worker.sinks.parts import Part, Rows

INLINE_ROWS = 20_000
"""How many rows of a batch, all partitions together, may pass through the driver unstaged."""


class SqlSink(Sink):
    """Rows into one table of SQLite or PostgreSQL, appended or upserted by key."""

    stages = True

    def __init__(
        self,
        options: SqlOptions,
        owner: Owner,
        beside: Beside | None = None,
        spare: SpareConnection | None = None,
    ) -> None:
        self._name = read_table_name(options.table)
        self._key = options.key
        self._owner = owner
        self._spare = spare
        self._engine = connect(options.url, owner, spare)
        self._fence: FenceTable | None = None
        self._target: SqlTarget | None = None
        self._limits = None if beside is None else beside.limits
        self._takes_refused = beside is not None and beside.takes_refused
        self._quarantine = (
            None if beside is None else QuarantineTable(self._engine, owner, beside, self._name.schema)
        )
        self._known: FenceRow | None = None
        self._is_small = True

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """Connects when it is first used."""
        spare = task.connected if isinstance(task.connected, SpareConnection) else None
        return cls(task.options, task.owner, task.beside, spare)

    @classmethod
    def connect(cls, task: SinkTask) -> SpareConnection | None:
        """To PostgreSQL, whose server looks up for a new session what others know; a file is open at once."""
        if not is_server(task.options.url):
            return None
        engine = connect(task.options.url, task.owner)
        try:
            with transaction(engine) as connection:
                newest_row(connection, task.owner)
            return SpareConnection(engine)
        except BaseException:
            engine.dispose()
            raise

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """By the columns that the table has."""
        return inspect_table(task.options, fields, task.owner)

    @property
    def place(self) -> str:
        """The URL, without its password."""
        return place(self._engine)

    def claim(self) -> FenceRow:
        """Raise the fence row to the owner's token, and clear up after the owners before."""
        end_older_sessions(self._engine, self._owner)
        beside = self._schema()
        with plain_sessions(self._engine, self._owner) as plain, transaction(plain) as connection:
            fences = enter_fence(connection, self._owner, anywhere=True, beside=beside)
        with transaction(self._engine) as connection:
            self._fence, row = claim_fence(connection, self._owner, fences)
        self._known = row
        sweeper = staging_sqlite if self._engine.dialect.name == "sqlite" else staging_postgres
        sweeper.sweep(self._engine, self._owner)
        return row

    def newest(self) -> FenceRow | None:
        """The task's fence row."""
        with plain_sessions(self._engine, self._owner) as plain, transaction(plain) as connection:
            return newest_row(connection, self._owner)

    def prepare(self, fields: Sequence[Field]) -> None:
        """Create the table, or check the one that is there."""
        if self._fence is None:
            raise SinkError("the sink was not claimed")
        table = describe_table(self._name, fields, self._key)
        with transaction(self._engine) as connection:
            ensure_table(connection, table)
            if self._quarantine is not None:
                self._quarantine.ensure(connection)
            beside = table.schema or current_schema(connection)
            stage_in = creatable(connection, [beside, self._fence.schema])
        self._target = SqlTarget(
            self._engine,
            self._owner,
            table,
            fields,
            stage_in=stage_in,
            most_refused=self._limits.rows if self._limits is not None and self._takes_refused else None,
        )

    def check_rows(self, rows: Rows) -> None:
        """By encoding them."""
        if self._target is not None:
            self._target.check(rows)

    def write(self, batch: Batch) -> Written:
        """Write the batch unless it is there.

        The rows are computed, and many of them staged, before the transaction begins: it is short, because a
        worker that freezes inside it keeps SQLite's lock.
        """
        if self._target is None or self._fence is None:
            raise SinkError("the sink was not prepared")
        if not self._is_next(batch.mark):
            with transaction(self._engine) as connection:
                is_new, stored = self._fence.admit(connection, self._owner, batch.mark)
            if not is_new:
                batch.discard()
                return Written(0, stored.rows, duplicate=True)
        try:
            parts = self._taken(self._target, batch)
            return self._put(self._target, self._fence, batch, parts)
        finally:
            self._target.staging.clear()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
        if self._spare is not None:
            self._spare.close()

    def _is_next(self, mark: Mark) -> bool:
        """By what this owner has written itself: who is newer is seen when the rows are put into the table.

        To ask the database before each batch, too, would be a transaction more for each.
        """
        return judge(self._known, self._owner, mark) is Verdict.WRITE

    def _taken(self, target: SqlTarget, batch: Batch) -> list[Part]:
        """The batch's rows, encoded, or what is known of those that are staged now.

        It is taken to be small if the last one was. Where that is wrong some of it is computed twice.
        """
        if self._is_small and (rows := batch.collect(INLINE_ROWS)) is not None:
            return target.encoded([whole(rows)])
        parts = batch.scatter(target.staging.take(INLINE_ROWS // max(batch.partitions, 1)))
        raise_faults(parts)
        self._is_small = sum(part.count for part in parts) <= INLINE_ROWS
        return target.encoded(parts)

    def _search(self, batch: Batch, putting: _Putting) -> Search | None:
        """For rows that the database refuses; None if one of them fails the batch."""
        if self._limits is None or not self._takes_refused:
            return None
        return Search(self._limits.left(putting.number, putting.total), batch.check)

    def _schema(self) -> str | None:
        """Where the rows go; None on SQLite."""
        if self._name.schema is not None:
            return self._name.schema
        with transaction(self._engine) as connection:
            return current_schema(connection)

    def _put(self, target: SqlTarget, fence: FenceTable, batch: Batch, parts: Sequence[Part]) -> Written:
        """The transaction; the fence is asked once more, for a newer owner may have come meanwhile."""
        putting = _Putting(batch, parts)
        putting.require(self._limits)
        names = target.names | fence.names | (set() if self._quarantine is None else self._quarantine.names)
        with target.staging.transaction(names) as connection:
            is_new, stored = fence.admit(connection, self._owner, batch.mark)
            if not is_new:
                return Written(0, stored.rows, duplicate=True)
            putting.refuse(target.write(connection, parts, self._search(batch, putting)))
            putting.require(self._limits)
            if self._quarantine is not None:
                self._quarantine.put(connection, putting.aside, batch.mark)
            total = stored.rows + putting.rows
            fence.move(connection, self._owner, batch.mark, total)
        self._known = replace(stored, last=batch.mark, rows=total)
        return Written(putting.rows, total, left_out=putting.own)


class _Putting:
    """A batch on its way into the database: its rows, and those that are put aside."""

    def __init__(self, batch: Batch, parts: Sequence[Part]) -> None:
        sifted = batch if isinstance(batch, Sifted) else None
        self.mark = batch.mark
        self.rows = sum(part.count for part in parts)
        self.aside = [row for part in parts for row in part.aside]
        self.own = counted(self.aside)
        self._before = NOTHING if sifted is None else sifted.left_out
        self.aside[:0] = () if sifted is None else sifted.aside

    @property
    def number(self) -> int:
        """Of those that are put aside."""
        return self._before.quarantined + self.own.quarantined

    @property
    def total(self) -> int:
        """All rows of the batch."""
        return self.rows + self.number + self._before.dropped

    def refuse(self, rows: Sequence[Aside]) -> None:
        """The database has not taken these."""
        self.rows -= len(rows)
        self.aside += rows
        self.own += counted(rows)

    def require(self, limits: Limits | None) -> None:
        """Raise unless as many rows may be put aside."""
        if limits is not None:
            limits.require(self.aside, self.number, self.total, self.mark)
