"""Runs rows that were put aside through the present definition: what would come of them in the sink.

A value of Kafka's and a line of a file are read again and go through the SQL; a row of the result, which has
been through it, has to meet the expectations only. A row that violates any of them stays where it is, also
one that would be dropped: nobody would notice.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from definition.source import Payload
from worker.query_engine import QueryError
from worker.sinks.bisection import RowsRefusedError
from worker.sinks.sifting import MASK
from worker.spark.batches.rows import compute, counted
from worker.spark.causes import describe
from worker.spark.columns import fields
from worker.spark.conditions import usable
from worker.spark.expectations import expected, masked, sifting
from worker.spark.reading.json_lines import LINE, is_of_objects, of_parsing, told, told_objects
from worker.spark.reading.payload import take_apart
from worker.spark.reading.payload_formats import text
from worker.spark.reading.reader import Read, load, read
from worker.spark.reading.unreadable import ASIDE, CORRUPT, is_by_lines, line_error, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from definition.document import Definition
    from definition.source import Source
    from worker.sinks.base import Condition, Field
    from worker.sinks.parts import Rows
    from worker.sinks.quarantine.store import StoredRow
    from worker.spark.checks.check_session import CheckSession

ID: Final = "_sparkherd_row"
"""The column that says which row it is, by its place among those that are played."""
_KAFKA: Final = (
    f"{ID} INT, key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp BIGINT,"
    " timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_PARTITION: Final = re.compile(r"/([^/=]+)=(?=[^/]*/)")
"""A column whose values are in the names of folders."""
_LINES: Final = f"{ID} INT, {LINE} BINARY"


class Stays(NamedTuple):
    """A row that is not played again, by its place, and why."""

    at: int
    why: str


class Player:
    """Plays rows of one task."""

    def __init__(self, session: CheckSession, definition: Definition) -> None:
        """The definition is analysed by Spark, and nothing read.

        Args:
            session: of Spark's, which nobody else has.
            definition: with its references resolved.

        Raises:
            QueryError: the definition cannot be run.
        """
        strict = tuple(msgspec.structs.replace(each, on_violation="quarantine") for each in definition.expect)
        self._session = session
        self._definition = msgspec.structs.replace(definition, expect=strict)
        self._read: Read = read(session, definition)
        expected(session, self._read.result, strict)  # what a start refuses is not run here either
        self.fields: Sequence[Field] = fields(self._read.result)
        self._schema: StructType = self._read.result.schema
        self._conditions: tuple[Condition, ...] = ()
        self._sifting = sifting(strict, self.fields)
        self._view = next((view for view, each in definition.views.items() if not each.static), "")

    def ask(self, conditions: Sequence[Condition]) -> None:
        """Look at the conditions of the sink as well, which does not tell which row it is that it refuses."""
        expect = self._definition.expect
        self._conditions = usable(self._read.result, conditions, len(expect))
        self._sifting = sifting(expect, self.fields, conditions=self._conditions)

    def screen(self, rows: Sequence[StoredRow]) -> list[Stays]:
        """The rows that cannot be read, or that violate something, where that can be told of each."""
        found = {at: why for at, row in enumerate(rows) if (why := self._strange(row)) is not None}
        for frame, is_source in self._frames(rows):
            bad = frame.where(f.col(ASIDE).isNotNull()).select(ID, f"{ASIDE}.error")
            found |= {row[0]: row[1] for row in bad.collect()}
            if not is_source or self._definition.sql is None:
                found |= self._violating(readable(frame))
        return [Stays(at, why) for at, why in sorted(found.items())]

    def result(self, rows: Sequence[StoredRow]) -> DataFrame:
        """What goes to the sink of rows that can be read.

        Raises:
            RowsRefusedError: some of it violates an expectation, or what the sink asks.
        """
        results = [self._result(readable(frame).drop(ID), is_source=own) for frame, own in self._frames(rows)]
        whole = results[0]
        for other in results[1:]:
            whole = whole.unionByName(other)
        marked = masked(whole, self._definition.expect, self._conditions)
        if self._sifting is not None:
            wrong = marked.where(f.col(MASK) != f.lit(0)).select(MASK).limit(1).collect()
            if wrong:
                raise RowsRefusedError(self._told(wrong[0][0]))
            marked = marked.drop(MASK)
        return marked

    def rows(self, rows: Sequence[StoredRow]) -> Rows:
        """What goes to the sink, computed.

        Raises:
            RowsRefusedError: as `result` does, or because the query fails on some of them.
        """
        with _failing_rows():
            return [tuple(row) for row in counted(self.result(rows)).collect()]

    def try_out(self, rows: Sequence[StoredRow]) -> None:
        """Compute it, and keep nothing; raises as `rows` does."""
        with _failing_rows():
            compute(self.result(rows))

    def _strange(self, row: StoredRow) -> str | None:
        """Why something of a row would be lost if it were played; None if nothing would."""
        if row.form == "row":
            known = {field.name for field in self.fields}
            others = [each for each in _names_in(row.raw) if each not in known]
            return f"the result has no column {others[0]} any more" if others else None
        path = str(row.places.get("file") or "") if row.form == "line" else ""
        columns = {each.lower() for each in _PARTITION.findall(path)} & self._columns()
        return f"{min(columns)} is a name of folders, and no part of the line" if columns else None

    def _columns(self) -> set[str]:
        """Of the source: those of its schema, and those that Spark finds in the names of folders."""
        found = () if self._read.source is None else self._read.source.columns
        return {each.lower() for each in found} | _columns_of(self._source().schema)

    def _violating(self, frame: DataFrame) -> Mapping[int, str]:
        if self._sifting is None:
            return {}
        marked = masked(frame, self._definition.expect, self._conditions).where(f.col(MASK) != f.lit(0))
        return {at: self._told(mask) for at, mask in marked.select(ID, MASK).collect()}

    def _told(self, mask: int) -> str:
        if self._sifting is None:
            return ""
        names = self._sifting.violated(mask)
        told = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} violated"
        return f"the sink refuses it: {told}" if mask & self._sifting.refusing else told

    def _result(self, frame: DataFrame, *, is_source: bool) -> DataFrame:
        sql = self._definition.sql
        if not is_source or sql is None:
            return frame
        frame.createOrReplaceTempView(self._view)
        for view, source in self._definition.views.items():
            if source.static:
                path = self._definition.path_of(view)
                load(self._session.spark, source, path).createOrReplaceTempView(view)
        return self._session.spark.sql(sql)

    def _frames(self, rows: Sequence[StoredRow]) -> Iterable[tuple[DataFrame, bool]]:
        """By form, each with `ID` and `ASIDE`, and whether SQL is still to be run."""
        numbered = list(enumerate(rows))
        if values := [(at, row) for at, row in numbered if row.form == "kafka"]:
            yield self._of_kafka(values), True
        if lines := [(at, row) for at, row in numbered if row.form == "line"]:
            yield self._of_lines(lines), True
        if results := [(at, row) for at, row in numbered if row.form == "row"]:
            yield self._of_results(results), False

    def _of_kafka(self, rows: Sequence[tuple[int, StoredRow]]) -> DataFrame:
        source = self._source()
        if not source.is_kafka:
            raise QueryError(f"{self._path()}: is not kafka any more, where rows were put aside from")
        frame = self._session.spark.createDataFrame([_record(at, row) for at, row in rows], _KAFKA)
        frame = frame.withColumn("timestamp", f.timestamp_micros("timestamp"))
        return take_apart(frame, source, self._path(), puts_aside=True)

    def _of_lines(self, rows: Sequence[tuple[int, StoredRow]]) -> DataFrame:
        source = self._source()
        if not is_by_lines(source):
            raise QueryError(f"{self._path()}: is not json or csv any more, where rows were put aside from")
        if is_of_objects(source):
            return told_objects(self._lines(rows), source, self._path())
        return _of_csv(self._lines(rows), source, line_error(source, self._path()))

    def _of_results(self, rows: Sequence[tuple[int, StoredRow]]) -> DataFrame:
        payload = Payload(format="json", schema=_ddl(self._schema))
        error = "is no row of the definition's result"
        return told(self._lines(rows), payload, self._path(), error, has_corrupt=False)

    def _lines(self, rows: Sequence[tuple[int, StoredRow]]) -> DataFrame:
        return self._session.spark.createDataFrame([(at, bytes(row.raw)) for at, row in rows], _LINES)

    def _source(self) -> Any:
        return self._definition.views[self._view]

    def _path(self) -> str:
        return self._definition.path_of(self._view)


@contextmanager
def _failing_rows() -> Iterator[None]:
    """What Spark raises about values while it computes is of one of the rows."""
    try:
        yield
    except (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException) as error:
        raise RowsRefusedError(describe(error).partition("\n")[0]) from error
    except (NumberFormatException, SparkRuntimeException) as error:
        raise RowsRefusedError(describe(error).partition("\n")[0]) from error


def _names_in(raw: bytes) -> Iterable[str]:
    """Of the fields of an object in JSON; none of what is none."""
    try:
        found = json.loads(raw)
    except ValueError:
        return ()
    return found if isinstance(found, dict) else ()


def _columns_of(schema: str | None) -> set[str]:
    """Their names as Spark tells them apart; of text that is no schema, none."""
    try:
        found = StructType.fromDDL(schema or "")
    except PySparkException:
        return set()
    return {each.lower() for each in found.fieldNames()} if isinstance(found, StructType) else set()


def _of_csv(frame: DataFrame, source: Source, error: str) -> DataFrame:
    """Lines of CSV as rows, with `ID` and `ASIDE`."""
    given = {name: str(value) for name, value in of_parsing(source.options).items()}
    given |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    told = ", ".join(text(each) for pair in given.items() for each in pair)
    schema = text(f"{source.schema}, `{CORRUPT}` STRING")
    row = f"from_csv(CAST({LINE} AS STRING), {schema}, map({told}))"
    read_so = frame.select(ID, f.expr(row).alias("row"))
    is_bad = f.col("row").isNull() | f.col(f"row.{CORRUPT}").isNotNull()
    aside = f.when(is_bad, f.struct(f.lit(error).alias("error"))).alias(ASIDE)
    return read_so.select(ID, "row.*", aside).drop(CORRUPT)


def _ddl(schema: StructType) -> str:
    """All may be NULL: what is missing in a row is."""
    return ", ".join(f"`{each.name.replace('`', '``')}` {each.dataType.simpleString()}" for each in schema)


def _record(at: int, row: StoredRow) -> tuple[Any, ...]:
    places = row.places
    headers = [(each.get("key"), _bytes(each.get("value"))) for each in places.get("headers") or ()]
    return (
        at,
        _bytes(places.get("key")),
        None if places.get("is_null") else bytes(row.raw),
        places.get("topic"),
        places.get("partition"),
        places.get("offset"),
        places.get("timestamp"),
        places.get("timestampType"),
        headers or None,
    )


def _bytes(given: str | None) -> bytes | None:
    return None if given is None else base64.b64decode(given)
