"""The fenced Delta sink: a table of Delta Lake, at a path or in Spark's catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from definition.reading import Constraint, Section
from definition.sinks.base import SinkFormat, Supports
from definition.values import Text, blank_fault, nul_fault
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DELTA_SINK = "delta"

_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode overwrite, or upsert and its key"
)
_PARTS_ONLY = "must be complete with sink.options.mode overwrite: other batches have only what is new"
_NAME = re.compile(r"(?:(?:\w+|`[^`]+`)\.)?(?:\w+|`[^`]+`)\Z")


def _path_fault(path: str) -> str | None:
    """What is wrong with the folder of a table."""
    return blank_fault(path) or nul_fault(path)


class DeltaOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced Delta sink.

    `cluster_by` counts when the table is made; `merge_schema` adds columns to it that the query has and it
    has not.
    """

    path: Annotated[str, Constraint(_path_fault)] | None = None
    mode: Literal["append", "upsert", "overwrite"] = "append"
    key: tuple[Text, ...] = ()
    cluster_by: tuple[Text, ...] = ()
    merge_schema: bool = False

    def faults(self) -> Iterator[Problem]:
        """An upsert needs to know which row is the same row."""
        if self.mode == "upsert" and self.key == ():
            yield Problem("key", "is required with mode upsert: the columns that identify a row")
        if self.mode in {"append", "overwrite"} and self.key:
            yield Problem("key", "goes with mode upsert only")
        if self.key and len({column.lower() for column in self.key}) < len(self.key):
            yield Problem("key", "names a column twice")


class DeltaFormat(SinkFormat):
    """Rows and the fence are one commit of the table."""

    name = DELTA_SINK
    options = DeltaOptions
    supports = Supports(table=True, partition_by=True)
    writer = "worker.sinks.delta.sink:DeltaSink"

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterator[Problem]:
        """A table is at a path or has a name."""
        if table is None and options.get("path") is None:
            yield Problem("options.path", "is required, unless sink.table names a table")
        if table is not None and options.get("path") is not None:
            yield Problem("options.path", "does not go with sink.table: give one of them")
        if table is not None and _NAME.match(table) is None:
            yield Problem("table", "must be a table of the session's catalog: orders or shop.orders")

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """Only a whole result may take the place of the one before it, and nothing else may."""
        mode = options.get("mode", "append")
        if mode == "append" and output_mode == "complete":
            return _WHOLE_AGAIN
        return _PARTS_ONLY if mode == "overwrite" and output_mode != "complete" else None

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """In place of what is there, by key, or beside it."""
        place = options.get("path") if table is None else table
        if options.get("mode") == "overwrite":
            return f"The first batch takes the place of what is in {place}."
        stay = f"The rows in {place} stay"
        if options.get("mode") == "upsert":
            return f"{stay}, and rows that are read again replace them by key ({', '.join(options['key'])})."
        return (
            f"{stay}, and rows that are read again are written again: delete them before you resume the task,"
            " when its status shows no cause, unless you want them twice."
        )
