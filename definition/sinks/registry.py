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
from definition.sinks.plugged import FAILURES, class_fault, first_line_of, made_of, own_fault
from protocol.messages.tasks import Problem

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

    A name that packages offer with several has them all; one that is built in has ours alone.
    """
    offered: dict[str, set[str]] = {}
    for entry in entry_points(group=GROUP):
        offered.setdefault(entry.name, set()).add(entry.value)
    places = {name: tuple(sorted(values)) for name, values in offered.items()}
    return dict(sorted((places | {name: (place,) for name, place in BUILT_IN.items()}).items()))


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
        return UnusableFormat(f"{name}, at {places[0]}, cannot be imported: {first_line_of(error)}")
    try:
        return _usable(name, places[0], found)
    except FAILURES as error:
        return UnusableFormat(f"{name}, at {places[0]}, cannot be used: {first_line_of(error)}")


def _usable(name: str, place: str, found: Any) -> SinkFormat:
    """What an entry point leads to, if it is a format; raises whatever a package's code does."""
    if name in BUILT_IN:
        own: SinkFormat = found()
        return own
    if fault := class_fault(found, name):
        return UnusableFormat(f"{name}, at {place}, {fault}")
    own = made_of(found)
    fault = own_fault(own)
    return own if fault is None else UnusableFormat(f"{name}, at {place}, {fault}")


class UnusableFormat(SinkFormat):
    """What a package offers and nobody can use; `why` is one line."""

    def __init__(self, why: str) -> None:
        self.why = why

    def option_faults(self, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Nothing else is worth telling."""
        del options
        return [Problem("format", self.why)]


def spark_format(name: str | None) -> str | None:
    """The name by which Spark has a sink of its own that a definition names; None without a name."""
    return SPARK_S_OWN.get(name.lower(), name) if name is not None else None
