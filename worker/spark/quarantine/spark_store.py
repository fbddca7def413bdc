"""A quarantine in a table of Delta's or Iceberg's, or in files, for those who look at it."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from definition.spark_conf import SQL_ON_FILES
from worker.sinks.errors import SinkError
from worker.sinks.quarantine.store import WHOLE, Found, QuarantineStore, StoredRow
from worker.spark.reading.payload_formats import text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.store import Choice

_ID = "concat_ws('-', resets, batch_id, nth)"


class SparkStore(QuarantineStore):
    """One task's rows, by Spark's own statements."""

    def __init__(
        self,
        session: SparkSession,
        owner: Owner,
        place: str,
        rows: Callable[[], DataFrame | None],
        table: str | None,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            session: one that nobody else has.
            owner: whose rows.
            place: where, as a person may see it.
            rows: reads all rows that are there now; None if there is no such place yet.
            table: what statements call it; None if rows cannot be changed there.
        """
        self._session = session
        self._owner = owner
        self._place = place
        self._all = rows
        self._table = table

    @property
    def place(self) -> str:
        """The table or the folder."""
        return self._place

    def find(self, choice: Choice, limit: int, *, oldest_first: bool = False) -> Found:
        """By three jobs."""
        frame = self._chosen(choice)
        if frame is None:
            return Found((), 0)
        whole = frame.where(WHOLE)
        total = whole.count()
        return Found(_rows(whole, limit, oldest_first=oldest_first), total, frame.count() - total)

    def discard(self, choice: Choice) -> int:
        """By their count before and after."""
        frame = self._chosen(choice)
        if frame is None:
            return 0
        number = frame.where(f.col("replay").isNull()).count()
        self._run(f"DELETE FROM {self._own_table} WHERE replay IS NULL AND {self._where(choice)}")  # noqa: S608
        return number

    def take(self, choice: Choice, replay: str, limit: int) -> Sequence[StoredRow]:
        """What another replay has taken meanwhile is left to that."""
        frame = self._chosen(choice)
        if frame is None:
            return ()
        free = frame.where(WHOLE).where(f.col("replay").isNull())
        ids = [row.id for row in _rows(free, limit, oldest_first=True)]
        if ids:
            among = f"replay IS NULL AND {self._mine} AND {_among(ids)}"
            self._run(f"UPDATE {self._own_table} SET replay = {text(replay)} WHERE {among}")  # noqa: S608
        mine = self._chosen_where(f"{self._mine} AND replay = {text(replay)}")
        return () if mine is None else _rows(mine, limit, oldest_first=True)

    def give_back(self, replay: str, ids: Collection[str] | None = None) -> None:
        """Others may take them."""
        if ids is None or ids:
            those = "" if ids is None else f" AND {_among(sorted(ids))}"
            own = f"{self._mine} AND replay = {text(replay)}{those}"
            self._run(f"UPDATE {self._own_table} SET replay = NULL WHERE {own}")  # noqa: S608

    def finish(self, replay: str) -> int:
        """By their count before."""
        own = f"{self._mine} AND replay = {text(replay)}"
        frame = self._chosen_where(own)
        number = 0 if frame is None else frame.count()
        if number:
            self._run(f"DELETE FROM {self._own_table} WHERE {own}")  # noqa: S608
        return number

    def replays(self) -> Sequence[str]:
        """By their rows."""
        frame = self._chosen_where(f"{self._mine} AND replay IS NOT NULL")
        return [] if frame is None else [row[0] for row in frame.select("replay").distinct().collect()]

    def close(self) -> None:
        """The session is somebody else's."""

    @property
    def _own_table(self) -> str:
        if self._table is None:
            raise SinkError(
                f"rows in {self._place} cannot be taken out of their files: a quarantine that is replayed or"
                " discarded from has to be a table (sql, delta, iceberg)"
            )
        return self._table

    @property
    def _mine(self) -> str:
        return f"group_id = {text(self._owner.group)} AND task = {text(self._owner.task)}"

    def _where(self, choice: Choice) -> str:
        parts = [self._mine]
        if choice.ids:
            parts.append(_among(choice.ids))
        if choice.reason is not None:
            parts.append(f"reason = {text(choice.reason)}")
        if choice.name is not None:
            parts.append(f"contains(concat(', ', name, ', '), {text(f', {choice.name}, ')})")
        return " AND ".join(parts)

    def _chosen(self, choice: Choice) -> DataFrame | None:
        return self._chosen_where(self._where(choice))

    def _chosen_where(self, condition: str) -> DataFrame | None:
        frame = self._all()
        return None if frame is None else frame.where(condition)

    def _run(self, statement: str) -> None:
        """Statements about a table by its path are off in this session but for this one."""
        before = self._session.conf.get(SQL_ON_FILES)
        self._session.conf.set(SQL_ON_FILES, "true")
        try:
            self._session.sql(statement)
        finally:
            self._session.conf.set(SQL_ON_FILES, str(before))


def _among(ids: Collection[str]) -> str:
    return f"{_ID} IN ({', '.join(map(text, ids))})"


def _rows(frame: DataFrame, limit: int, *, oldest_first: bool = False) -> list[StoredRow]:
    """Times as numbers: the worker's zone is none of theirs."""
    newest = (f.col("resets").desc(), f.col("batch_id").desc(), f.col("nth"))
    order = (f.col("resets"), f.col("batch_id"), f.col("nth")) if oldest_first else newest
    found = frame.select(*map(_column, StoredRow._fields)).orderBy(*order).limit(limit).collect()
    named = (zip(StoredRow._fields, row, strict=True) for row in found)
    return [StoredRow.of(map(_decoded, values)) for values in named]


def _decoded(named: tuple[str, Any]) -> Any:
    """Times are microseconds, and in files of JSON bytes are base64."""
    match named:
        case "put_aside_at", int() as micros:
            return micros / 1_000_000
        case "raw", str() as raw:
            with suppress(ValueError):  # somebody has written it by hand
                return b64decode(raw, validate=True)
    return named[1]


def _column(name: str) -> Column:
    """As it is in any of the formats: files of JSON have bytes as texts."""
    if name == "put_aside_at":
        return f.unix_micros(f.col(name).cast("timestamp")).alias(name)
    return f.col(name)
