"""The fenced Iceberg sink: a table in a catalog of Iceberg's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from definition.reading import Constraint
from definition.sinks.base import SinkFormat, Supports
from definition.sinks.modes import KEY, MERGE_SCHEMA, MODE, ModeOptions, mode_fault, rows_written_again
from definition.values import LiteralText
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ICEBERG_SINK = "iceberg"
MAIN = "main"
"""The branch of a table that readers get unless they name another."""
OWN_REFS = "sparkherd_"
"""What the names of the sink's own branches and tags begin with."""
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_PART = r"(?:[^\s.`'\\]+|`(?:[^`'\\]|``)+`)"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART}){{2,}}")
_TABLE_FORM = "must be catalog.namespace.table; a name with other signs in it stands in backticks"
_REF = re.compile(rf"(?:{_PART}\.){{3,}}`?(?:branch|tag)_[^.`]*`?")
_REF_FORM = "ends in what SQL has for a branch or a tag: name the table, and give a branch as options.branch"


def _branch_fault(branch: str) -> str | None:
    """What is wrong with the branch that rows are to go to."""
    if not _BRANCH.fullmatch(branch):
        return "must be of letters, digits, _ and -, at most 128 of them"
    is_own = branch.startswith(OWN_REFS)
    return f"is a reserved name: the sink's own begin with {OWN_REFS}" if is_own else None


class IcebergOptions(ModeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced Iceberg sink."""

    mode: Annotated[Literal["append", "upsert", "overwrite"], MODE] = "append"
    key: Annotated[tuple[LiteralText, ...], KEY] = ()
    branch: Annotated[
        str, Constraint(_branch_fault), Meta(description="the branch of the table that rows go to")
    ] = MAIN
    merge_schema: Annotated[bool, MERGE_SCHEMA] = False


class IcebergFormat(SinkFormat):
    """Tables of Iceberg; each batch is a snapshot that directly follows the one where the fence was read."""

    name = ICEBERG_SINK
    options = IcebergOptions
    supports = Supports(table=True, partition_by=True, schema_evolution=True, refused_rows=True)
    writer = "worker.sinks.iceberg.sink:IcebergSink"

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Its tables are in catalogs only."""
        del options
        if table is None:
            return [Problem("table", "is required with the sink iceberg: catalog.namespace.table")]
        if not _TABLE.fullmatch(table):
            return [Problem("table", _TABLE_FORM)]
        return [Problem("table", _REF_FORM)] if _REF.fullmatch(table) else ()

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """A whole result takes the place of the one before it, and nothing else does."""
        return mode_fault(options, output_mode, "overwrite")

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """By key, as a whole, or beside what is there."""
        return rows_written_again(table, options)
