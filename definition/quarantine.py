"""Where rows go that a task puts aside: `quarantine` in its definition (protocol §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from definition.lines import file_faults, source_faults
from definition.reading import Constraint, Section, readable
from definition.same_database import same_database, same_table
from definition.same_place import same_place
from definition.sink import Sink
from definition.sinks.sql import SQL_SINK, schema_fault
from definition.source import BY_LINES
from definition.tables import table_fault
from definition.values import Format, LiteralText
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from definition.document import Definition

OnError = Literal["fail", "quarantine"]

DEFAULT_TABLE: Final = "sparkherd_quarantine"
"""Beside the rows of a sink `sql`."""
MOST_ROWS: Final = 100_000
"""Of a batch that may be put aside at the most: they pass through the driver."""

_ONLY_SQL = "is required unless the sink is sql: which fenced format the rows go to, such as delta"
_NO_FENCE = "has no fence, so a row could be put aside twice or be lost: must be one of {formats}"
_BESIDE = (
    "is the sink's own database: leave format and options out, and give table if it is not to be {table}"
)
_DATABASE_ONLY = (
    "must be left out with on_error: quarantine and a sink sql: which rows a database refuses it tells in the"
    " transaction that writes them, and what is put aside has to be in the same one"
)
_VOLATILE = (
    "calls {name}, whose value is another one when a batch is done again; that needs a quarantine beside the"
    " rows of a sink sql"
)
_SAME_PLACE = "is the place of the sink's rows, or in it, or around it: what is put aside has to have its own"
_NEEDS_FENCE = "{what} needs a sink with a fence: {formats}"


def _beside_fault(text: str) -> str | None:
    return None if text == DEFAULT_TABLE else table_fault(text)


def _ratio_fault(ratio: float) -> str | None:
    return None if 0 < ratio <= 1 else "must be above 0 and at most 1"


class Quarantine(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fenced format of its own; without `format`, a table beside the rows of a sink `sql`.

    A batch fails of which more rows than `max_quarantined_per_batch` would be put aside, or more than a
    hundred and more than `max_quarantined_ratio` of all its rows: something else is wrong then than a row.
    """

    format: Format | None = None
    table: LiteralText | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    max_quarantined_per_batch: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = 10_000
    max_quarantined_ratio: Annotated[
        float,
        Constraint(_ratio_fault),
        msgspec.Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": 1}),
    ] = 0.1

    @property
    def sink(self) -> Sink | None:
        """What its rows are written by; None if they go beside those of a sink `sql`."""
        if self.format is None:
            return None
        return Sink(format=self.format, table=self.table, options=self.options)

    @property
    def beside(self) -> str:
        """The table beside the rows of a sink `sql`."""
        return self.table or DEFAULT_TABLE

    def faults(self) -> Iterator[Problem]:
        """Its format is fenced, and only adds rows to those that are there."""
        if not readable(self.format, self.table, self.options):
            return
        if self.format is None:
            yield from self._faults_beside()
        else:
            yield from self._faults_elsewhere(self.format)

    def _faults_beside(self) -> Iterator[Problem]:
        if self.options:
            yield Problem("options", "goes with format: what is put aside is in the database of the sink")
        if self.table is not None and (fault := _beside_fault(self.table)):
            yield Problem("table", fault)

    def _faults_elsewhere(self, name: str) -> Iterator[Problem]:
        sink = Sink(format=name, table=self.table, options=self.options)
        if sink.fenced is None:
            yield Problem("format", _NO_FENCE.format(formats=_fenced_names()))
            return
        yield from sink.faults()
        if sink.options.get("mode", "append") != "append":
            yield Problem("options.mode", "must be append: what is put aside stays until somebody replays it")


def quarantine_faults(definition: Definition) -> Iterator[Problem]:
    """What is wrong between what a task puts aside, where to, and the rest of its definition."""
    if not readable(definition.expect, definition.on_error, definition.quarantine, definition.sink):
        return
    users = [
        f"expect[{at}].on_violation"
        for at, each in enumerate(definition.expect)
        if readable(each.on_violation) and each.is_quarantined
    ]
    users += ["on_error"] if definition.on_error == "quarantine" else []
    if definition.entrypoint is not None:
        yield from _entrypoint_faults(definition)
    elif definition.sink is not None and (users or definition.quarantine is not None):
        yield from _place_faults(definition, definition.sink, users)
    if definition.on_error == "quarantine" and definition.entrypoint is None:
        yield from _error_faults(definition)


def _entrypoint_faults(definition: Definition) -> Iterator[Problem]:
    for name in ("on_error", "quarantine"):
        if getattr(definition, name) not in (None, "fail"):
            yield Problem(name, "does not go with entrypoint: it is of the rows of a source or of sql")


def _place_faults(definition: Definition, sink: Sink, users: list[str]) -> Iterator[Problem]:
    """Whether rows can be put aside there as safely as they are written to the sink."""
    place = definition.quarantine
    if not readable(sink.format):
        return
    if sink.fenced is None:
        needs = users[0] if users else "quarantine"
        yield Problem("sink", _NEEDS_FENCE.format(what=needs, formats=_fenced_names()))
        return
    yield from _repeated_faults(definition)
    is_sql = sink.format == SQL_SINK
    if place is None or place.format is None:
        if not is_sql:
            yield Problem("quarantine" if place is None else "quarantine.format", _ONLY_SQL)
        elif place is not None and (fault := _table_fault(sink, place)):
            yield Problem("quarantine.table", fault)
        return
    if readable(place.format, place.table, place.options, sink.table, sink.options):
        yield from _elsewhere_faults(definition, sink, place)


def _elsewhere_faults(definition: Definition, sink: Sink, place: Quarantine) -> Iterator[Problem]:
    """Whether it is another place than the sink's."""
    if place.sink is not None and (at := same_place(sink, place.sink)):
        yield Problem(f"quarantine.{at}", _SAME_PLACE)
    if sink.format != SQL_SINK:
        return
    if place.format == SQL_SINK and same_database(sink.options.get("url"), place.options.get("url")):
        yield Problem("quarantine.format", _BESIDE.format(table=DEFAULT_TABLE))
    elif definition.on_error == "quarantine":
        yield Problem("quarantine.format", _DATABASE_ONLY)


def _table_fault(sink: Sink, place: Quarantine) -> str | None:
    """Why rows cannot be put aside into that table beside the rows of a sink `sql`."""
    table, url = sink.options.get("table"), sink.options.get("url")
    if place.table is None or not readable(place.table) or table_fault(place.table) is not None:
        return None
    if isinstance(url, str) and (fault := schema_fault(url, place.table)):
        return fault
    if not isinstance(table, str) or table_fault(table) is not None:
        return None
    return "is the table of the sink's rows" if same_table(url, table, place.table) else None


def _repeated_faults(definition: Definition) -> Iterator[Problem]:
    """Elsewhere, rows are put aside before the others are written: done again, they have to be the same."""
    if definition.quarantine is None or definition.quarantine.format is None:
        return
    from definition.sql.volatile import random_function, volatile_function  # noqa: PLC0415 - not for readers

    sifting = [each for each in definition.expect if readable(each.where) and each.sifts]
    for at, each in enumerate(definition.expect):
        if each in sifting and (name := volatile_function(each.where)):
            yield Problem(f"expect[{at}].where", _VOLATILE.format(name=name))
    if sifting and readable(definition.sql) and (name := random_function(definition.sql or "")):
        yield Problem("sql", _VOLATILE.format(name=name))


def _error_faults(definition: Definition) -> Iterator[Problem]:
    """Where a row that cannot be read can be told from the others, and can be left out of the result."""
    if definition.output_mode != "append":
        yield Problem("on_error", "must be fail unless output_mode is append: other modes keep state")
    if not readable(definition.source, definition.sources):
        return
    streams = [view for view, source in definition.views.items() if source.static is not True]
    if len(streams) > 1:
        yield Problem("on_error", "must be fail with several sources that stream: no batch is of one of them")
    for view in streams[:1]:
        source = definition.views[view]
        for problem in source_faults(source):
            yield Problem(f"{definition.path_of(view)}.{problem.path}", problem.message)
        if readable(source.format) and (source.format or "").lower() in BY_LINES:
            yield from file_faults(definition, view, source)


def _fenced_names() -> str:
    from definition.sinks.registry import fenced_formats  # noqa: PLC0415

    return ", ".join(fenced_formats())
