"""Where a task writes: `sink` in its definition (protocol §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from definition.reading import Section, read, readable
from definition.references import option_problems
from definition.sinks.registry import fenced_formats, sink_format, spark_format
from definition.values import Format, LiteralText, Scalar
from protocol.connectors import needed
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from definition.sinks.base import SinkFormat


class Sink(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where rows go: a format with a fence (`definition.sinks`), else Spark's own of that name.

    A `table` of Spark's catalogs may stand in place of a format of Spark's, or beside the one that it is made
    with; `partition_by` names the columns that rows are laid apart by.
    """

    format: Format | None = None
    table: LiteralText | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    partition_by: tuple[LiteralText, ...] = ()

    @property
    def shown(self) -> str:
        """What a person knows it by: its format, or its table."""
        return f"table {self.table}" if self.format is None else self.format

    @property
    def fenced(self) -> SinkFormat | None:
        """Its format, if that is a fenced one; None if it is Spark's own."""
        return sink_format(self.format)

    @property
    def spark_format(self) -> str | None:
        """Spark's name for it, if it is Spark's own; None if the table's catalog knows what it is."""
        return spark_format(self.format)

    @property
    def needs(self) -> str | None:
        """The format that the worker has to have for it; None if every one has it."""
        own = self.fenced
        return needed(self.spark_format) if own is None else own.needs

    def faults(self) -> Iterator[Problem]:
        """References to secrets are well-formed, and the rest is what the format allows."""
        own = self.fenced
        yield from option_problems(self.options, "options", for_spark=own is None)
        if self.format is None and self.table is None:
            yield Problem("format", "is required, unless there is a table")
        if own is not None:
            yield from self._faults_of(own)
        elif isinstance(self.format, str) and self.format.lower() in fenced_formats():
            yield Problem("format", f"is a fenced sink's in lower case only: {self.format.lower()}")
        yield from self.option_faults()

    def _faults_of(self, own: SinkFormat) -> Iterator[Problem]:
        """What a fenced format knows nothing of, or does not take together."""
        if self.table is not None and not own.supports.table:
            hint = "; its table is options.table" if "table" in own.options.__struct_fields__ else ""
            yield Problem("table", f"does not go with the sink {self.format}{hint}")
        elif readable(self.table, self.options):
            yield from own.table_faults(self.table, self.options)
        if self.partition_by and not own.supports.partition_by:
            yield Problem("partition_by", f"does not go with the sink {self.format}")

    def option_faults(self) -> Iterable[Problem]:
        """What the format does not allow; to be asked again when references have been resolved."""
        if not readable(self.format, self.options):
            return ()
        own = self.fenced
        return (
            read(self.options, dict[str, Scalar], "options")[1]
            if own is None
            else own.option_faults(self.options)
        )

    def output_mode_fault(self, output_mode: str) -> str | None:
        """Why the rows of a query with this output mode cannot be right here.

        Which modes go with Spark's own sinks Spark itself says.
        """
        if not readable(self.format, self.options, output_mode) or (own := self.fenced) is None:
            return None
        if output_mode not in own.supports.output_modes:
            return f"must be {' or '.join(own.supports.output_modes)} with the sink {self.format}"
        return own.output_mode_fault(self.options, output_mode)

    def read_options(self) -> Any:
        """The options as its format reads them, defaults filled in; as they are if it is Spark's own."""
        own = self.fenced
        return self.options if own is None else msgspec.convert(self.options, own.options)
