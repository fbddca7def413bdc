"""Finds the fenced formats of sinks, built in and plugged in by packages (docs/sinks.md).

Which names there are is known without importing any of them. Whether a task is fenced hangs on its sink's
name alone, so a name that is offered counts as fenced also where what is behind it cannot be imported: such a
definition is refused, and where a worker has it already, its task fails and says why.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from definition.sinks.base import SinkFormat
from definition.sinks.plugged import NoFormatError, made_of
from protocol.connectors import BUILT_IN as IN_EVERY_SPARK
from protocol.connectors import PACKAGES
from protocol.messages.tasks import Problem
from telemetry.foreign_errors import FAILURES, first_line_of, let_interrupts_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GROUP: Final = "sparkherd.sinks"
"""The entry-point group by which a package offers formats; the name is that of the format."""
BUILT_IN: Final = {
    "sql": "definition.sinks.sql:SqlFormat",
    "fenced_files": "definition.sinks.files:FilesFormat",
    "delta": "definition.sinks.delta:DeltaFormat",
    "iceberg": "definition.sinks.iceberg:IcebergFormat",
}
"""No entry points of our own: what an installation has on record may be older than a checkout's code."""
SPARK_S_OWN: Final = {"delta_unfenced": "delta", "iceberg_unfenced": "iceberg"}
"""What a definition calls those sinks of Spark's whose own names are, or will be, those of fenced formats."""


@cache
def fenced_formats() -> dict[str, tuple[str, ...]]:
    """Every fenced format that is built in or that an installed package offers, and its `module:Class`.

    A name that packages offer with several has them all; one that is built in has ours alone. Those of
    Spark's own formats are left out.
    """
    places = {name: values for name, values in _offered().items() if not _is_spark_s(name)}
    return dict(sorted((places | {name: (place,) for name, place in BUILT_IN.items()}).items()))


def refused_names() -> dict[str, str]:
    """The names that packages offer and that Spark's own formats have, and why they do not get them.

    Who writes to Spark's format of that name has to go on doing so, and counts as without a fence: a worker
    that lacks the package would take the task and write there.
    """
    wrong = {name: values for name, values in _offered().items() if _is_spark_s(name)}
    return {
        name: f"{name}, at {' and '.join(values)}, is refused: the name is that of one of Spark's own formats"
        for name, values in sorted(wrong.items())
    }


@cache
def _offered() -> dict[str, tuple[str, ...]]:
    """What packages offer: names, each with its places."""
    offered: dict[str, set[str]] = {}
    for entry in entry_points(group=GROUP):
        offered.setdefault(entry.name, set()).add(entry.value)
    return {name: tuple(sorted(values)) for name, values in offered.items()}


def _is_spark_s(name: str) -> bool:
    """Whether it is a name of one of Spark's own, which finds its formats in whatever letters."""
    known = IN_EVERY_SPARK | PACKAGES.keys() | SPARK_S_OWN.keys()
    return name not in BUILT_IN and name.lower() in known


def plugged_in() -> tuple[str, ...]:
    """The formats that packages offer and that can be used here: what a worker tells that it has."""
    names = (name for name in fenced_formats() if name not in BUILT_IN)
    return tuple(name for name in names if not isinstance(sink_format(name), UnusableFormat))


@cache
def sink_format(name: object) -> SinkFormat | None:
    """The fenced format of this name; None if it is one of Spark's own, or no name."""
    if not isinstance(name, str) or not (places := fenced_formats().get(name)):
        return None
    if len(places) > 1:
        return UnusableFormat(
            f"{name} is offered by several packages, at {' and '.join(places)}: uninstall all but one"
        )
    try:
        found = EntryPoint(name, places[0], GROUP).load()
    except FAILURES as error:
        let_interrupts_through(error)
        return UnusableFormat(f"{name}, at {places[0]}, cannot be imported: {first_line_of(error)}")
    try:
        return found() if name in BUILT_IN else made_of(found, name)
    except NoFormatError as fault:
        return UnusableFormat(f"{name}, at {places[0]}, {fault}")
    except FAILURES as error:
        return UnusableFormat(f"{name}, at {places[0]}, cannot be used: {first_line_of(error)}")


class UnusableFormat(SinkFormat):
    """What a package offers and nobody can use; `why` is one line."""

    def __init__(self, why: str) -> None:
        self.why = why

    def option_faults(self, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Nothing else is worth telling."""
        del options
        return [Problem("format", self.why)]

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """Only the package could tell."""
        del table, options
        return f"What its sink does with rows it gets again is unknown: {self.why}."


def spark_format(name: str | None) -> str | None:
    """The name by which Spark has a sink of its own that a definition names; None without a name."""
    return SPARK_S_OWN.get(name.lower(), name) if name is not None else None
