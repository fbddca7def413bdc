"""A Delta table as Spark has it, in a JVM of the worker's own and behind a server alike.

Spark has no words for a table's transaction ids: they are asked for, and set, by Java of ours that
`make jars` puts beside Delta (connectors/delta).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from definition.sinks.delta import DELTA_SINK
from definition.spark_conf import SQL_ON_FILES
from worker.sinks.asking import Question
from worker.sinks.column_types import quoted, type_sql
from worker.sinks.delta.marks import Note, Seen
from worker.sinks.delta.places import place_fault
from worker.sinks.errors import SinkError
from worker.sinks.last_rows import in_order, last_of_each_key
from worker.sinks.spark_errors import said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.base import Field
    from worker.sinks.delta.port import Layout, Way

_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_DELTA: Final = "spark.databricks.delta"
_APP: Final = f"{_DELTA}.write.txnAppId"
_VERSION: Final = f"{_DELTA}.write.txnVersion"
_METADATA: Final = f"{_DELTA}.commitInfo.userMetadata"
_METRICS: Final = f"{_DELTA}.history.metricsEnabled"
"""Whether a commit says how many rows it has, which is all that anybody knows of them."""
_SOURCE: Final = "sparkherd_batch"
_NO_TEXT: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of NULL in a table that is laid apart, which Delta reads as such."""


class SparkTable:
    """One table, at a path or of the session's catalog, and the ids of one task in it."""

    def __init__(
        self, session: Callable[[], SparkSession] | None, app: str, path: str | None, name: str | None
    ) -> None:
        """`path` or `name` is given; without a session nothing is known of the table, nor done to it."""
        self._session = session
        self._app = app
        self._name = name
        self._path = path
        self._target: str | None = None

    @property
    def place(self) -> str:
        """Its path or name."""
        return str(self._name if self._path is None else self._path)

    def create(self) -> None:
        """An empty schema stands for one that nobody has given yet."""
        self._require_settings()
        answer = self._ask({"depth": 0})
        if _seen(answer) is None:
            self._require_place(answer)
            self._make()
            if self.look(0) is None:
                raise SinkError(
                    f"what is at {self.place} is no Delta table, or its _delta_log is gone: bring that back,"
                    " or name another place"
                )

    def _make(self) -> None:
        """Of several that make it at once Delta lets one; the others find it there."""
        try:
            self._sql(f"CREATE TABLE IF NOT EXISTS {self._named()} USING delta")
        except SinkError:
            if self.look(0) is None:
                raise

    def look(self, depth: int) -> Seen | None:
        """By a question that plans and runs no job of Spark's, but for what Delta reads of its log."""
        return None if self._session is None else _seen(self._ask({"depth": depth}))

    def swap(
        self, expected: int, versions: Mapping[str, int], note: Note, layout: Layout | None = None
    ) -> bool:
        """A transaction of Delta's, which fails if another one has set the task's number since."""
        request: dict[str, Any] = {"expect": expected, "set": versions, "note": _text(note)}
        if layout is not None:
            request |= {"columns": _struct(layout.fields), "partition_by": list(layout.partition_by)}
        return bool(self._ask(request)["committed"])

    def cluster(self, columns: Sequence[str]) -> None:
        """Counts for files that are written, or optimized, from now on."""
        self._sql(f"ALTER TABLE {self._named()} CLUSTER BY ({_list(columns)})")

    def add(self, fields: Sequence[Field]) -> None:
        """At the end."""
        self._sql(f"ALTER TABLE {self._named()} ADD COLUMNS ({', '.join(map(_column, fields))})")

    def write(self, frame: DataFrame, way: Way, note: Note) -> None:
        """In the batch's own session, which nobody else has."""
        with _settings(frame.sparkSession, {SQL_ON_FILES: "true", _METRICS: "true"}):
            if way.how == "upsert":
                self._merge(frame, way, note)
            else:
                self._put(frame, note, replace=way.how == "overwrite")

    def _put(self, frame: DataFrame, note: Note, *, replace: bool) -> None:
        from pyspark.sql.functions import lit  # noqa: PLC0415 - the sinks' rules are loaded without Spark

        writer = frame.writeTo(self._named()).option("txnAppId", self._app)
        writer = writer.option("txnVersion", str(note.version)).option("userMetadata", _text(note))
        if replace:
            # the session may say dynamic: only the partitions that the batch has rows for would go then
            writer.option("partitionOverwriteMode", "static").overwrite(lit(True))  # noqa: FBT003 - a column
        else:
            writer.append()

    def _merge(self, frame: DataFrame, way: Way, note: Note) -> None:
        """MERGE takes the number from the session only. NULL is a key as any other."""
        from pyspark.sql.functions import expr  # noqa: PLC0415 - as in _put

        target = self._named()
        same = [f"{target}.{quoted(column)} <=> {_SOURCE}.{quoted(column)}" for column in way.key]
        settings = {_APP: self._app, _VERSION: str(note.version), _METADATA: _text(note)}
        with _settings(frame.sparkSession, settings):
            folders = {name: expr(_as_folder(name)) for name in way.folders}
            rows = frame.withColumns(folders) if folders else frame  # Spark Connect takes no empty ones
            source = last_of_each_key(in_order(rows), way.key).alias(_SOURCE)
            merging = source.mergeInto(target, expr(" AND ".join(same)))
            merging.whenMatched().updateAll().whenNotMatched().insertAll().merge()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        place = {"table": self._name} if self._path is None else {"path": _absolute(self._path)}
        try:
            answer = Question(DELTA_SINK).ask(self._spark(), {**place, "app": self._app, **request})
        except SinkError:
            raise
        except Exception as error:
            raise self._told(error) from error
        if self._path is not None:
            self._target = f"delta.{quoted(answer['path'])}"
        return answer

    def _spark(self) -> SparkSession:
        if self._session is None:
            raise SinkError(f"the table {self.place} can be asked by Spark only, and there is none yet")
        return self._session()

    def _named(self) -> str:
        """As SQL names it, past any view of the query's; a path as Spark has it, when it was asked once."""
        if self._target is None:
            self._target = self._found()
        return self._target

    def _found(self) -> str:
        if self._name is None:
            self.look(0)
            return str(self._target)
        if "." in self._name:
            return f"spark_catalog.{self._name}"
        return f"spark_catalog.{quoted(self._spark().catalog.currentDatabase())}.{self._name}"

    def _sql(self, statement: str) -> None:
        session = self._spark()
        try:
            with _settings(session, {SQL_ON_FILES: "true"}):
                session.sql(statement).collect()
        except Exception as error:
            raise self._told(error) from error

    def _told(self, error: BaseException) -> SinkError:
        return SinkError(f"the table {self.place}: {said(error)}")

    def _require_place(self, answer: dict[str, Any]) -> None:
        """Where the table of a name would be made is known only when it is there."""
        if "path" in answer and (fault := place_fault(answer["path"], answer["log_store"])):
            raise SinkError(fault)

    def _require_settings(self) -> None:
        conf = self._spark().conf
        extensions = conf.get("spark.sql.extensions", "") or ""
        catalog = conf.get("spark.sql.catalog.spark_catalog", "") or ""
        if _EXTENSION not in extensions or not catalog.endswith("DeltaCatalog"):
            raise SinkError(
                f"Delta needs its package, and the settings spark.sql.extensions={_EXTENSION} and"
                f" spark.sql.catalog.spark_catalog={_CATALOG}: give each to the group's workers by"
                " --spark-conf (with --spark-remote, to the Spark Connect server at its start)"
            )


def _seen(answer: dict[str, Any]) -> Seen | None:
    if answer["version"] < 0:
        return None
    return Seen(
        table=answer["id"],
        path=answer["path"],
        log_store=answer["log_store"],
        versions=answer["versions"],
        note=_note(answer.get("note")),
        metrics=answer.get("metrics") or {},
        columns=tuple((answer["columns"] or {}).get("fields", ())),
        partition_by=tuple(answer["partition_by"]),
        configuration=answer["configuration"],
        features=tuple(answer["features"]),
        at=answer["version"],
    )


def _note(text: str | None) -> Note | None:
    """None for what others have written there."""
    try:
        return None if text is None else msgspec.json.decode(text, type=Note)
    except msgspec.MsgspecError:
        return None


def _text(note: Note) -> str:
    return msgspec.json.encode(note).decode()


def _struct(fields: Sequence[Field]) -> dict[str, Any]:
    columns = [{"name": each.name, "type": each.type, "nullable": True, "metadata": {}} for each in fields]
    return {"type": "struct", "fields": columns}


def _column(field: Field) -> str:
    """As ALTER TABLE takes it."""
    return f"{quoted(field.name)} {type_sql(field.type)}"


def _as_folder(column: str) -> str:
    """A text as it is in a table that is laid apart by it: NULL and some texts have one folder."""
    text = quoted(column)
    return f"CASE WHEN {text} NOT IN ('', '{_NO_TEXT}') THEN {text} END"


def _absolute(path: str) -> str:
    return path if ":" in path.partition("/")[0] else os.path.abspath(path)  # noqa: PTH100 - a URL's double slash


def _list(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session's settings as they are given, in the block only."""
    before = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)
