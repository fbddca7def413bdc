"""The fenced SQL sink: a table of SQLite or PostgreSQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from definition.reading import Constraint, Section, readable
from definition.sinks.base import SinkFormat
from definition.sinks.urls import url_fault
from definition.tables import read_table_name, table_fault
from definition.values import Text
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SQL_SINK = "sql"
FENCE_TABLE = "sparkherd_fence"
"""Where the sink keeps its fence rows; no task may write its rows there, nor where it stages some."""

_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode upsert and its key"
)


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


class SqlFormat(SinkFormat):
    """Rows and the fence move in one transaction of the database."""

    name = SQL_SINK
    options = SqlOptions
    writer = "worker.sinks.sql:SqlSink"

    @property
    def needs(self) -> str | None:
        """Every worker has it."""
        return None

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """A whole result can only take the place of the one before it."""
        is_appended = options.get("mode", "append") == "append"
        return _WHOLE_AGAIN if is_appended and output_mode == "complete" else None

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """By key, or beside what is there."""
        del table
        stay = f"The rows in the table {options.get('table')} stay"
        if options.get("mode") == "upsert":
            return f"{stay}, and rows that are read again replace them by key ({', '.join(options['key'])})."
        return (
            f"{stay}, and rows that are read again are written again: empty the table before you resume the"
            " task, when its status shows no cause, unless you want them twice."
        )


def _is_sqlite(url: str) -> bool:
    """Whether a URL that was checked is SQLite's; one that is all secret is for the worker to check."""
    return re.match(r"sqlite[+:]", url) is not None
