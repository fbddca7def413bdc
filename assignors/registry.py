"""Finds assignors, built-in and plugged in, by entry point or as `module:Class` (architecture §4)."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract, isclass
from typing import Any, Final, get_args

from assignors.base import Assignor, Kind
from telemetry.foreign_errors import FAILURES, first_line_of, let_interrupts_through
from telemetry.secrets import shown

GROUP = "sparkherd.assignors"
"""The entry-point group by which a package offers assignors."""

BUILT_IN: Final = {
    "range": "assignors.range:RangeAssignor",
    "roundrobin": "assignors.roundrobin:RoundRobinAssignor",
    "sticky": "assignors.sticky:StickyAssignor",
    "weighted": "assignors.weighted:WeightedAssignor",
}
"""No entry points of our own: what an installation has on record may be older than a checkout's code."""

MOST_OF_A_KIND: Final = 50
"""Characters that are shown of what is none."""
_PLACE = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*\Z")


class AssignorError(ValueError):
    """An assignor cannot be used; the text is one line that says why."""


class _UnfitError(Exception):
    """What is there is no assignor; the text says why."""


def available() -> dict[str, str]:
    """Every assignor that is built in or that an installed package offers, and its `module:Class`."""
    offered = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    return dict(sorted((offered | BUILT_IN).items()))


def load_assignor(spec: str) -> Assignor:
    """The assignor that `spec` names, by an entry point's name or as `module:Class`.

    Raises:
        AssignorError: there is none, or what is there is no assignor.
    """
    found = _imported(spec if ":" in spec else _offered(spec), spec)
    try:
        return _made_of(found)
    except _UnfitError as unfit:
        raise AssignorError(f"assignor {spec!r} {unfit}") from None
    except FAILURES as error:
        let_interrupts_through(error)
        raise AssignorError(f"assignor {spec!r} cannot be made: {first_line_of(error)}") from error


def _made_of(found: Any) -> Assignor:
    """One of the class, whose attributes may be of any kind."""
    if not (isclass(found) and issubclass(found, Assignor)):
        raise _UnfitError("is no subclass of sparkherd.Assignor")
    if isabstract(found) or not isinstance(getattr(found, "name", None), str):
        raise _UnfitError("lacks an assign method or a name")
    if found.kind not in get_args(Kind):
        kind = shown(found.kind)[:MOST_OF_A_KIND]
        raise _UnfitError(f"is of kind {kind!r}, not {' or '.join(get_args(Kind))}")
    made: Assignor = found()
    if not isinstance(made.name, str):
        raise _UnfitError("has a name that is no text")
    return made


def _offered(name: str) -> str:
    """Where the assignor of this name is; the same place offered twice, by an old install, is no conflict."""
    places = sorted({entry.value for entry in entry_points(group=GROUP, name=name)} | _built_in(name))
    if not places:
        raise AssignorError(
            f"there is no assignor {name!r}: installed are {', '.join(available())};"
            " anything else is named as module:Class"
        )
    if len(places) > 1:
        raise AssignorError(f"assignor {name!r} is ambiguous: name one of {', '.join(places)}")
    return places[0]


def _built_in(name: str) -> set[str]:
    return {BUILT_IN[name]} if name in BUILT_IN else set()


def _imported(place: str, spec: str) -> object:
    """What is at `place`."""
    if not _PLACE.match(place):
        raise AssignorError(f"assignor {spec!r} is not of the form module:Class")
    try:
        return EntryPoint(spec, place, GROUP).load()
    except FAILURES as error:
        let_interrupts_through(error)
        raise AssignorError(f"assignor {spec!r} cannot be imported: {first_line_of(error)}") from error
