"""Finds the fenced formats of sinks, built in and plugged in by packages (docs/sinks.md).

Which names there are is known without importing any of them. Whether a task is fenced hangs on its sink's
name alone, so a name that is offered counts as fenced also where what is behind it cannot be imported: such a
definition is refused, and where a worker has it already, its task fails and says why.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import TYPE_CHECKING, Any, Final

from definition.sinks.base import SinkFormat
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
def fenced_formats() -> dict[str, str]:
    """Every fenced format that is built in or that an installed package offers, and its `module:Class`."""
    offered = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    return dict(sorted((offered | BUILT_IN).items()))


def plugged_in() -> tuple[str, ...]:
    """The formats that packages offer and that can be used here: what a worker tells that it has."""
    names = (name for name in fenced_formats() if name not in BUILT_IN)
    return tuple(name for name in names if not isinstance(sink_format(name), UnusableFormat))


@cache
def sink_format(name: object) -> SinkFormat | None:
    """The fenced format of this name; None if it is one of Spark's own, or no name."""
    if not isinstance(name, str) or (place := fenced_formats().get(name)) is None:
        return None
    try:
        found = EntryPoint(name, place, GROUP).load()
    except Exception as error:  # noqa: BLE001 - whatever the package's modules raise
        shown = f"{type(error).__name__}: {error}".partition("\n")[0]
        return UnusableFormat(f"{name}, at {place}, cannot be imported: {shown}")
    if not (isclass(found) and issubclass(found, SinkFormat)):
        return UnusableFormat(f"{name}, at {place}, is no subclass of sparkherd.SinkFormat")
    if getattr(found, "name", None) != name or not isinstance(getattr(found, "writer", None), str):
        return UnusableFormat(f"{name}, at {place}, lacks a writer, or has another name")
    return found()


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
