"""Where the rows of a large batch wait, and their way from there into the table.

Nobody else reads a staging area, so executors may write to it at any speed, twice, or half; nothing in it
counts until one transaction at the driver takes the attempts that Spark has told it of, checks that all of
their rows are there, and moves the fence.

An area belongs to one sink, from a query's start to its end, and is removed after each batch, whatever
became of that. Nobody else ever uses one of its name: what a dead query has left, of whatever columns, is in
nobody's way, and the next claim of its task removes it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import sqlalchemy as sa

from worker.sinks.errors import SinkError
from worker.sinks.parts import Take
from worker.sinks.table import insert_from

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, FromClause, Table

    from worker.sinks.fence import Owner
    from worker.sinks.parts import Part, Stage

PARTITION = "sparkherd_partition"
ATTEMPT = "sparkherd_attempt"
_AREA = re.compile(r"(?P<digest>[0-9a-f]+)_(?P<token>\d+)_[0-9a-f]+\Z")


class Staging(ABC):
    """The staging area of one sink, seen from the driver."""

    stage: Stage
    """What the executors are given."""
    source: FromClause
    """The staged rows: the table's columns as `c0`, `c1` and so on, `PARTITION` and `ATTEMPT`."""
    position: sa.ColumnElement[int]
    """Grows with every row of an attempt."""
    _is_handed_out = False

    @abstractmethod
    def transaction(self, names: Collection[str]) -> AbstractContextManager[Connection]:
        """A transaction that sees the staged rows; `names` may be shown of what goes wrong in it."""

    @abstractmethod
    def dispose(self) -> None:
        """Remove the area. Never raises: what stays is the next claim's to remove."""

    def take(self, inline_rows: int) -> Take:
        """What executors are to do with a partition."""
        self._is_handed_out = True
        return Take(self.stage, inline_rows)

    def clear(self) -> None:
        """A batch is over: remove the area if executors may have made one."""
        if self._is_handed_out:
            self._is_handed_out = False
            self.dispose()

    def move(self, connection: Connection, table: Table, parts: Sequence[Part]) -> None:
        """Put the staged rows of `parts` into `table`.

        Raises:
            SinkError: some are gone, as after a crash of the database: nothing may be written then.
        """
        chosen = self.source.c[ATTEMPT].in_([part.attempt for part in parts])
        count = sa.select(sa.func.count()).select_from(self.source).where(chosen)
        there, wanted = connection.execute(count).scalar_one(), sum(part.count for part in parts)
        if there != wanted:
            raise SinkError(f"of {wanted} staged rows {there} are left; the batch has to be done again")
        connection.execute(insert_from(table, self._newest(table, chosen), connection.dialect))

    def prepare_for_search(self, connection: Connection) -> None:
        """Some staged rows will be asked for by their positions, again and again, in this transaction."""
        del connection

    def positions(self, connection: Connection, part: Part) -> tuple[int, int]:
        """Those of the first and the last staged row of a part, which has one at least."""
        ends = sa.select(sa.func.min(self.position), sa.func.max(self.position))
        first, last = connection.execute(ends.where(self.source.c[ATTEMPT] == part.attempt)).one()
        return int(first), int(last)

    def move_some(self, connection: Connection, table: Table, part: Part, among: range) -> None:
        """Put those staged rows of a part into `table` that are at these positions; others are, too."""
        is_among = self.position.between(among.start, among.stop - 1)
        chosen = sa.and_(self.source.c[ATTEMPT] == part.attempt, is_among)
        connection.execute(insert_from(table, self._newest(table, chosen), connection.dialect))

    def move_one(self, connection: Connection, part: Part, position: int) -> None:
        """Put the staged row of a part that is there into the table, if there is one; where that is fast."""
        raise NotImplementedError

    def row(self, connection: Connection, table: Table, part: Part, position: int) -> tuple[Any, ...]:
        """A staged row of a part, as the database has it."""
        columns = [self.source.c[f"c{at}"] for at in range(len(table.columns))]
        chosen = sa.and_(self.source.c[ATTEMPT] == part.attempt, self.position == position)
        return tuple(connection.execute(sa.select(*columns).where(chosen)).one())

    def _newest(self, table: Table, chosen: sa.ColumnElement[bool]) -> sa.Select[tuple[object, ...]]:
        """The chosen rows; of several with one key the last: PostgreSQL upserts none twice in one go."""
        columns = [self.source.c[f"c{at}"] for at in range(len(table.columns))]
        keys = [column for column, to in zip(columns, table.columns, strict=True) if to.primary_key]
        if not keys:
            return sa.select(*columns).where(chosen)
        last_first = (self.source.c[PARTITION].desc(), self.position.desc())
        rank = sa.func.row_number().over(partition_by=keys, order_by=last_first).label("nth")
        ranked = sa.select(*columns, rank).where(chosen).subquery()
        return sa.select(*(ranked.c[column.name] for column in columns)).where(ranked.c.nth == 1)


def new_area(owner: Owner) -> str:
    """A name for an area that no other ever has; at most 45 characters, for PostgreSQL cuts names off."""
    return f"{owner.digest}_{owner.token}_{uuid4().hex[:12]}"


def is_dead(area: str, owner: Owner) -> bool:
    """Whether `area` was the owner's own before this claim, or a former owner's of its task.

    Those of older versions end in the number of a batch.
    """
    match = _AREA.match(area)
    return match is not None and match["digest"] == owner.digest and int(match["token"]) <= owner.token


def staged_columns(table: Table) -> list[sa.ColumnClause[object]]:
    """The columns of a staging area, for a statement."""
    names = [*(f"c{at}" for at in range(len(table.columns))), PARTITION, ATTEMPT]
    return [sa.column(name) for name in names]
