"""The fenced Iceberg sink: a table in a catalog of Iceberg's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from definition.reading import Constraint, Section
from definition.sinks.base import SinkFormat, Supports
from definition.values import LiteralText
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ICEBERG_SINK = "iceberg"
MAIN = "main"
"""The branch of a table that readers get unless they name another."""
OWN_REFS = "sparkherd_"
"""What the names of the sink's own branches and tags begin with."""
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_PART = r"(?:[^\s.`'\\]+|`(?:[^`'\\]|``)+`)"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART}){{2,}}")
_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode overwrite"
)
_PARTS_ONLY = "must be complete with sink.options.mode overwrite: other batches are no whole result"
_TABLE_FORM = "must be catalog.namespace.table; a name with other signs in it stands in backticks"


def _branch_fault(branch: str) -> str | None:
    """What is wrong with the branch that rows are to go to."""
    if not _BRANCH.fullmatch(branch):
        return "must be of letters, digits, _ and -, at most 128 of them"
    is_own = branch.startswith(OWN_REFS)
    return f"is a reserved name: the sink's own begin with {OWN_REFS}" if is_own else None


class IcebergOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced Iceberg sink."""

    mode: Literal["append", "upsert", "overwrite"] = "append"
    key: tuple[LiteralText, ...] = ()
    branch: Annotated[str, Constraint(_branch_fault)] = MAIN
    add_columns: bool = False

    def faults(self) -> Iterator[Problem]:
        """An upsert needs to know which row is the same row."""
        if self.mode == "upsert" and self.key == ():
            yield Problem("key", "is required with mode upsert: the columns that identify a row")
        if self.mode in {"append", "overwrite"} and self.key:
            yield Problem("key", "goes with mode upsert only")
        if self.key and len({column.lower() for column in self.key}) < len(self.key):
            yield Problem("key", "names a column twice")


class IcebergFormat(SinkFormat):
    """Each batch is a snapshot that directly follows the one at which the fence was read."""

    name = ICEBERG_SINK
    options = IcebergOptions
    supports = Supports(table=True, partition_by=True)
    writer = "worker.sinks.iceberg.sink:IcebergSink"

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Its tables are in catalogs only."""
        del options
        if table is None:
            return [Problem("table", "is required with the sink iceberg: catalog.namespace.table")]
        return () if _TABLE.fullmatch(table) else [Problem("table", _TABLE_FORM)]

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """A whole result takes the place of the one before it, and nothing else does."""
        mode = options.get("mode", "append")
        if mode == "append" and output_mode == "complete":
            return _WHOLE_AGAIN
        return _PARTS_ONLY if mode == "overwrite" and output_mode != "complete" else None

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """By key, as a whole, or beside what is there."""
        stay = f"The rows in {table} stay"
        if options.get("mode") == "overwrite":
            return f"{stay} until the first batch, which takes their place."
        if options.get("mode") == "upsert":
            return f"{stay}, and rows that are read again replace them by key ({', '.join(options['key'])})."
        return (
            f"{stay}, and rows that are read again are written again: delete them from the table before you"
            " resume the task, when its status shows no cause, unless you want them twice."
        )
