"""What a fenced format of a definition's `sink` is: its options, what it takes, and what writes it.

A format is described here without what it takes to write it, so that a manager and the command line, which
have no Spark, know all that they judge a definition by (docs/sinks.md).
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

import msgspec

from definition.reading import Section, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from protocol.messages.tasks import Problem

OutputMode: TypeAlias = Literal["append", "update", "complete"]
"""A query's, as Spark has it."""


class Supports(msgspec.Struct, frozen=True, kw_only=True):
    """What a format takes beside options.

    Args:
        output_modes: of queries, one at least; options may narrow that down (`SinkFormat.output_mode_fault`).
        table: `sink.table` names a table of one of Spark's catalogs.
        partition_by: `sink.partition_by` names columns that rows are laid apart by.
        schema_evolution: an option lets it add columns to what is there.
        refused_rows: its place may refuse single rows, which `on_error: quarantine` puts aside.
    """

    output_modes: Annotated[tuple[OutputMode, ...], msgspec.Meta(min_length=1)] = (
        "append",
        "update",
        "complete",
    )
    table: bool = False
    partition_by: bool = False
    schema_evolution: bool = False
    refused_rows: bool = False


class NoOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a format that needs none."""


class SinkFormat(ABC):
    """A fenced format; a subclass says of itself what the manager has to know.

    Attributes:
        name: what `sink.format` has to be; lower case.
        options: what `sink.options` are read as. Its `faults` are told with their place, as those of the
            definition are.
        supports: what else of a sink it takes.
        writer: `module:Class` of the `sparkherd.Sink` that writes it, imported on workers only.
    """

    name: ClassVar[str]
    writer: ClassVar[str]
    options: ClassVar[type[Section]] = NoOptions
    supports: ClassVar[Supports] = Supports()

    @property
    def needs(self) -> str | None:
        """The format that a worker has to have for it, None if each one has; workers tell those they have.

        By itself that is this one: the package that brings it may be missing somewhere.
        """
        return self.name

    def option_faults(self, options: Mapping[str, Any]) -> Iterable[Problem]:
        """What is wrong with `sink.options`; places start at the sink."""
        return read(options, self.options, "options")[1]

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterable[Problem]:
        """What is wrong between `sink.table` and the options; places start at the sink.

        Args:
            table: of a catalog; None without one, and always where `supports` knows of no tables.
            options: as they are written.
        """
        del table, options
        return ()

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """Why the rows of a query with this output mode cannot be right with such options, None if they can.

        Asked only of modes that it `supports`.
        """
        del options, output_mode
        return None

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """What becomes of the rows that are there, and of those that are read again, when a task is reset."""
        del options
        return (
            f"What is in {self.name if table is None else table} stays, and rows that are read again are"
            " written again."
        )
