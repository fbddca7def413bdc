"""The fenced SQL sink: a table of SQLite or PostgreSQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from definition.reading import Constraint, readable
from definition.sinks.base import SinkFormat, Supports
from definition.sinks.modes import KEY, MODE, ModeOptions, mode_fault, rows_written_again
from definition.sinks.urls import url_fault
from definition.tables import read_table_name, table_fault
from definition.values import Text
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SQL_SINK = "sql"
FENCE_TABLE = "sparkherd_fence"
"""Where the sink keeps its fence rows; no task may write its rows there, nor where it stages some."""


class SqlOptions(ModeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced SQL sink."""

    url: Annotated[str, Constraint(url_fault), Meta(description="SQLAlchemy's URL of the database")]
    table: Annotated[
        str, Constraint(table_fault), Meta(description="the table, made if it is not there; schema.table")
    ]
    mode: Annotated[Literal["append", "upsert"], MODE] = "append"
    key: Annotated[tuple[Text, ...], KEY] = ()

    def faults(self) -> Iterator[Problem]:
        """The mode and its key, and what SQLite has not."""
        yield from super().faults()
        if readable(self.url, self.table) and (fault := schema_fault(self.url, self.table)):
            yield Problem("table", fault)


class SqlFormat(SinkFormat):
    """Tables of SQLite and PostgreSQL; rows and the fence move in one transaction."""

    name = SQL_SINK
    options = SqlOptions
    supports = Supports(refused_rows=True)
    writer = "worker.sinks.sql:SqlSink"

    @property
    def needs(self) -> str | None:
        """Every worker has it."""
        return None

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """A whole result can only take the place of the one before it."""
        return mode_fault(options, output_mode, "upsert and its key")

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """By key, or beside what is there."""
        del table
        return rows_written_again(f"the table {options.get('table')}", options)


def schema_fault(url: str, table: str) -> str | None:
    """What is wrong with the schema of a table, whose name was checked, in the database of a URL."""
    is_wrong = _is_sqlite(url) and read_table_name(table).schema is not None
    return "has a schema before it, and SQLite has none" if is_wrong else None


def _is_sqlite(url: str) -> bool:
    """Whether a URL that was checked is SQLite's; one that is all secret is for the worker to check."""
    return re.match(r"sqlite[+:]", url) is not None
