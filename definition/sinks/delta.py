"""The fenced Delta sink: a table of Delta Lake, at a path or in Spark's catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from definition.reading import Constraint
from definition.sinks.base import SinkFormat, Supports
from definition.sinks.modes import KEY, MERGE_SCHEMA, MODE, ModeOptions, mode_fault, rows_written_again
from definition.values import Text, blank_fault, nul_fault
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DELTA_SINK = "delta"

_NAME = re.compile(r"(?:(?:\w+|`[^`]+`)\.)?(?:\w+|`[^`]+`)\Z")
_PATH = re.compile(r"`?delta`?\.`[^`]*[/:]", re.IGNORECASE)


def _path_fault(path: str) -> str | None:
    """What is wrong with the folder of a table."""
    return blank_fault(path) or nul_fault(path)


class DeltaOptions(ModeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced Delta sink."""

    path: Annotated[
        Annotated[str, Constraint(_path_fault)] | None,
        Meta(description="the table's folder or URL, unless sink.table names it"),
    ] = None
    mode: Annotated[Literal["append", "upsert", "overwrite"], MODE] = "append"
    key: Annotated[tuple[Text, ...], KEY] = ()
    cluster_by: Annotated[
        tuple[Text, ...], Meta(description="columns that a table is clustered by, when the task makes it")
    ] = ()
    merge_schema: Annotated[bool, MERGE_SCHEMA] = False


class DeltaFormat(SinkFormat):
    """Tables of Delta Lake; rows and the fence are one commit."""

    name = DELTA_SINK
    options = DeltaOptions
    supports = Supports(table=True, partition_by=True, schema_evolution=True, refused_rows=True)
    writer = "worker.sinks.delta.sink:DeltaSink"

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterator[Problem]:
        """A table is at a path or has a name."""
        if table is None and options.get("path") is None:
            yield Problem("options.path", "is required, unless sink.table names a table")
        if table is not None and options.get("path") is not None:
            yield Problem("options.path", "does not go with sink.table: give one of them")
        if table is not None and _NAME.match(table) is None:
            yield Problem("table", "must be a table of the session's catalog: orders or shop.orders")
        elif table is not None and _PATH.match(table):
            yield Problem("table", "is a place, by which Spark takes `delta`: give it as options.path")

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """Only a whole result may take the place of the one before it, and nothing else may."""
        return mode_fault(options, output_mode, "overwrite, or upsert and its key")

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """In place of what is there, by key, or beside it."""
        return rows_written_again(options.get("path") if table is None else table, options)
