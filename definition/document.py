"""The definition of a task: what it reads, what it does, where it writes (protocol §6).

The Structs are the one place where the names and types are written down. What needs an SQL parser is
checked by `definition.check`; what needs Spark (a format, a path, a module) only the worker knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from definition.intervals import trigger_interval_fault
from definition.reading import Constraint, Section, path_to, read, readable
from definition.references import find_problems
from definition.sink_urls import url_fault
from definition.tables import read_table_name, table_fault
from protocol.messages.base import MAX_INT
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_BYTES = 1_048_576
"""Of a definition; Kafka Connect stores no larger one either (`max.request.size` of its producer).

A decoder holds up every other thread until it is done: two seconds for eight megabytes of brackets.
"""

SQL_SINK = "sql"
FILES_SINK = "fenced_files"
FENCED_SINKS = frozenset({SQL_SINK, FILES_SINK})
"""They refuse whatever a former owner still writes; every other sink takes rows from two drivers at once."""
FENCE_TABLE = "sparkherd_fence"
"""Where the SQL sink keeps its fence rows; no task may write its rows there, nor where it stages some."""

SUBSTITUTE = "spark.sql.variable.substitute"
"""Has Spark fill `${env:NAME}` in SQL from its own environment."""
SQL_ON_FILES = "spark.sql.runSQLOnFiles"
"""Lets SQL read files by their names, as in `` csv.`/data/x.csv` ``."""
CATALOGS = "spark.sql.catalog."
"""What begins so has Spark make objects of any class, such as one that sends statements to any database."""

_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode upsert and its key"
)
_NO_WHOLE = "complete needs sql with an aggregate, such as SELECT a, count(*) ... GROUP BY a"

_IDENTIFIER = r"[^\W\d]\w*"
_ENTRYPOINT = re.compile(rf"{_IDENTIFIER}(\.{_IDENTIFIER})*:{_IDENTIFIER}\Z")


def _blank(text: str) -> str | None:
    return None if text.strip() else "must not be empty"


def _entrypoint_fault(text: str) -> str | None:
    return None if _ENTRYPOINT.match(text) else "is not of the form package.module:function"


def _weight_fault(weight: float) -> str | None:
    return None if 0 < weight < float("inf") else "must be a finite number above 0"


def _is_sqlite(url: str) -> bool:
    """Whether a URL that was checked is SQLite's; one that is all secret is for the worker to check."""
    return re.match(r"sqlite[+:]", url) is not None


def _folder_fault(path: str) -> str | None:
    """What is wrong with the folder of the fenced file sink."""
    if re.match(r"(?!file:/)[A-Za-z][A-Za-z0-9+.-]*:/", path):
        return "must be a folder that is mounted on workers and executors, not the URL of a store"
    return _nul_fault(path) or (None if path.strip("/. ") else "must name a folder")


def _nul_fault(text: str) -> str | None:
    return "must not contain NUL, which databases refuse" if "\0" in text else None


Text = Annotated[str, Constraint(_blank), msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
_ENTRYPOINT_SHOWN = msgspec.Meta(
    extra_json_schema={"pattern": rf"^{_IDENTIFIER}(\.{_IDENTIFIER})*:{_IDENTIFIER}(?![\s\S])"}
)
_ABOVE_ZERO = msgspec.Meta(extra_json_schema={"exclusiveMinimum": 0})
Scalar = str | int | float | bool
"""What Spark takes as the value of an option."""


class Source(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where rows come from: a streaming source of Spark's; its rows are the view `source`."""

    format: Text
    schema: Text | None = None
    options: dict[str, Scalar] = msgspec.field(default_factory=dict)

    def faults(self) -> Iterable[Problem]:
        """References to secrets are well-formed."""
        return find_problems(self.options, "options")


class SqlOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced SQL sink."""

    url: Annotated[str, Constraint(url_fault)]
    table: Annotated[str, Constraint(table_fault)]
    mode: Literal["append", "upsert"] = "append"
    key: tuple[Text, ...] = ()

    def faults(self) -> Iterator[Problem]:
        """An upsert needs to know which row is the same row."""
        if self.mode == "upsert" and self.key == ():
            yield Problem("key", "is required with mode upsert: the columns that identify a row")
        if self.mode == "append" and self.key:
            yield Problem("key", "goes with mode upsert only")
        if self.key and len({column.lower() for column in self.key}) < len(self.key):
            yield Problem("key", "names a column twice")
        if readable(self.url, self.table) and _is_sqlite(self.url) and read_table_name(self.table).schema:
            yield Problem("table", "has a schema before it, and SQLite has none")


class FilesOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced file sink."""

    path: Annotated[str, Constraint(_folder_fault)]
    format: Literal["parquet", "json"] = "parquet"


class Sink(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where rows go: `sql` and `fenced_files` are exactly-once sinks, every other format is Spark's own."""

    format: Text
    options: dict[str, Any] = msgspec.field(default_factory=dict)

    def faults(self) -> Iterator[Problem]:
        """References to secrets are well-formed, and the options are what the format allows."""
        for_spark = self.format not in {SQL_SINK, FILES_SINK}
        yield from find_problems(self.options, "options", for_spark=for_spark)
        yield from self.option_faults()

    def option_faults(self) -> Iterable[Problem]:
        """What the format does not allow; to be asked again when references have been resolved."""
        if not readable(self.format, self.options):
            return ()
        own: dict[str, Any] = {SQL_SINK: SqlOptions, FILES_SINK: FilesOptions}
        return read(self.options, own.get(self.format, dict[str, Scalar]), "options")[1]

    def output_mode_fault(self, output_mode: str) -> str | None:
        """Why the rows of a query with this output mode cannot be right here.

        Which modes go with Spark's own sinks Spark itself says.
        """
        if not readable(self.format, self.options):
            return None
        if self.format == FILES_SINK and output_mode in {"update", "complete"}:
            return f"must be append with the sink {FILES_SINK}: a file is never changed"
        is_appended = self.options.get("mode", "append") == "append"
        if self.format == SQL_SINK and is_appended and output_mode == "complete":
            return _WHOLE_AGAIN
        return None

    def sql_options(self) -> SqlOptions:
        """The options of a sink of format `sql`, defaults filled in."""
        return msgspec.convert(self.options, SqlOptions)

    def files_options(self) -> FilesOptions:
        """The options of a sink of format `fenced_files`, defaults filled in."""
        return msgspec.convert(self.options, FilesOptions)


class Trigger(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a batch starts; without a trigger, as soon as the one before is done."""

    processing_time: Annotated[str, Constraint(trigger_interval_fault)] | None = None
    available_now: bool = False

    def faults(self) -> Iterator[Problem]:
        """Exactly one of the two."""
        if self.processing_time is None and self.available_now is False:
            yield Problem("", "must have processing_time or available_now: true")
        if self.processing_time is not None and self.available_now is True:
            yield Problem("available_now", "cannot stand beside processing_time")


class Restart(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a failing query is started again before it is FAILED: `max_restarts` in any `window_ms`."""

    max_restarts: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 5
    window_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)] = 300_000


class Definition(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task, declarative (`source`, `sql`, `sink`) or an `entrypoint` with its `options`.

    `weight`, `worker` (a pin) and `labels` are for the assignor; `spark_conf` is for the task's session.
    `fenced` is an entry point's word that it writes through `context.fence.guard` and in no other way.
    """

    source: Source | None = None
    entrypoint: Annotated[str, Constraint(_entrypoint_fault), _ENTRYPOINT_SHOWN] | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    sql: Text | None = None
    sink: Sink | None = None
    output_mode: Literal["append", "update", "complete"] = "append"
    trigger: Trigger | None = None
    weight: Annotated[float, Constraint(_weight_fault), _ABOVE_ZERO] = 1.0
    worker: Annotated[str, Constraint(_blank), Constraint(_nul_fault)] | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    spark_conf: dict[str, str] = msgspec.field(default_factory=dict)
    restart: Restart = Restart()
    fenced: bool = False

    @property
    def is_fenced(self) -> bool:
        """Whether a former owner's writes are refused, so that the next one need not wait for its end."""
        if self.entrypoint is not None:
            return self.fenced
        return self.sink is not None and self.sink.format in FENCED_SINKS

    def faults(self) -> Iterator[Problem]:
        """A task is either declarative or an entry point, and has what belongs to that."""
        if self.source is not None and self.entrypoint is not None:
            yield Problem("entrypoint", "cannot stand beside source: a task has one or the other")
        if self.source is None and self.entrypoint is None:
            yield Problem("source", "is required, unless there is an entrypoint")
        if self.source is not None and self.sink is None:
            yield Problem("sink", "is required with source")
        yield from find_problems(self.options, "options", for_spark=False)
        yield from self._conf_faults()
        if self.entrypoint is None and self.options:
            yield Problem("options", "goes with entrypoint; those of a source are source.options")
        if self.entrypoint is None and self.fenced is True:
            yield Problem("fenced", "goes with entrypoint; whether a sink is fenced its format says")
        if self.source is None and self.entrypoint is not None and self.sql is not None:
            yield Problem("sql", "goes with source: it reads the view of that name")
        if self.sink and (fault := self.sink.output_mode_fault(self.output_mode)):
            yield Problem("output_mode", fault)
        if self.source and self.sql is None and self.output_mode == "complete":
            yield Problem("output_mode", _NO_WHOLE)

    def _conf_faults(self) -> Iterator[Problem]:
        if not readable(self.spark_conf):
            return
        yield from find_problems(self.spark_conf, "spark_conf")
        for key in self.spark_conf:
            if key in {SUBSTITUTE, SQL_ON_FILES} or key.startswith(CATALOGS):
                yield Problem(path_to("spark_conf", key), "is for the worker's --spark-conf only")

    def runs_like(self, other: Definition) -> bool:
        """Whether a query of `other` may run on unchanged under this definition.

        True if they differ in nothing but weight, pin, labels, restart policy and what they say of a fence.
        """
        return self._effect() == other._effect()

    def _effect(self) -> bytes:
        """All that the query itself depends on; as JSON, because 1 and true are not the same to Spark."""
        inert = msgspec.structs.replace(
            self, weight=1.0, worker=None, labels={}, restart=Restart(), fenced=False
        )
        return msgspec.json.encode(inert, order="deterministic")


class DefinitionError(Exception):
    """A document is no definition; `problems` lists every fault with its place."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{each.path}: {each.message}".lstrip(": ") for each in problems))
        self.problems = problems


def parse_definition(document: bytes | msgspec.Raw) -> Definition:
    """The definition that `document`, JSON, holds.

    Raises:
        DefinitionError: with all problems at once.
    """
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DefinitionError((Problem("", f"is not JSON: {error}"),)) from None
    definition, problems = read(value, Definition)
    if problems:
        raise DefinitionError(problems)
    return definition


class _FormatOf(msgspec.Struct):
    """The part of a sink that tells whether it is fenced."""

    format: str = ""


class _Fencing(msgspec.Struct):
    """The part of a definition that tells whether it is fenced."""

    entrypoint: str | None = None
    sink: _FormatOf | None = None
    fenced: bool = False


def is_fenced(document: bytes | msgspec.Raw) -> bool:
    """`Definition.is_fenced` of a document that was found sound before, without reading all of it."""
    told = msgspec.json.decode(document, type=_Fencing)
    if told.entrypoint is not None:
        return told.fenced
    return told.sink is not None and told.sink.format in FENCED_SINKS
