"""Where a task writes: `sink` in its definition (protocol §6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from definition.reading import Constraint, Section, read, readable
from definition.references import option_problems
from definition.sink_urls import url_fault
from definition.tables import read_table_name, table_fault
from definition.values import Format, LiteralText, Scalar, Text, nul_fault
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SQL_SINK = "sql"
FILES_SINK = "fenced_files"
FENCED_SINKS = frozenset({SQL_SINK, FILES_SINK})
"""They refuse whatever a former owner still writes; every other sink takes rows from two drivers at once."""
FENCE_TABLE = "sparkherd_fence"
"""Where the SQL sink keeps its fence rows; no task may write its rows there, nor where it stages some."""


_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode upsert and its key"
)


def _is_sqlite(url: str) -> bool:
    """Whether a URL that was checked is SQLite's; one that is all secret is for the worker to check."""
    return re.match(r"sqlite[+:]", url) is not None


def _folder_fault(path: str) -> str | None:
    """What is wrong with the folder of the fenced file sink."""
    if re.match(r"(?!file:/)[A-Za-z][A-Za-z0-9+.-]*:/", path):
        return "must be a folder that is mounted on workers and executors, not the URL of a store"
    return nul_fault(path) or (None if path.strip("/. ") else "must name a folder")


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
    """Where rows go: `sql` and `fenced_files` are exactly-once sinks, every other format is Spark's own.

    A `table` of Spark's catalogs may stand in place of a format, or beside the one that it is made with;
    `partition_by` names the columns that Spark's own sinks lay files apart by.
    """

    format: Format | None = None
    table: LiteralText | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    partition_by: tuple[LiteralText, ...] = ()

    @property
    def shown(self) -> str:
        """What a person knows it by: its format, or its table."""
        return f"table {self.table}" if self.format is None else self.format

    def faults(self) -> Iterator[Problem]:
        """References to secrets are well-formed, and the rest is what the format allows."""
        for_spark = self.format not in FENCED_SINKS
        yield from option_problems(self.options, "options", for_spark=for_spark)
        if self.format is None and self.table is None:
            yield Problem("format", "is required, unless there is a table")
        if self.format in FENCED_SINKS:
            yield from self._faults_of_fenced()
        yield from self.option_faults()

    def _faults_of_fenced(self) -> Iterator[Problem]:
        """What only Spark's own sinks understand."""
        if self.table is not None:
            hint = "; its table is options.table" if self.format == SQL_SINK else ""
            yield Problem("table", f"does not go with the sink {self.format}{hint}")
        if self.partition_by:
            yield Problem("partition_by", f"does not go with the sink {self.format}")

    def option_faults(self) -> Iterable[Problem]:
        """What the format does not allow; to be asked again when references have been resolved."""
        if not readable(self.format, self.options):
            return ()
        own: dict[str | None, Any] = {SQL_SINK: SqlOptions, FILES_SINK: FilesOptions}
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
