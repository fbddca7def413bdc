"""Formats that packages plug in, kept from harming whoever asks them: what they get wrong is told as a fault.

A manager asks them when it is handed a definition, and a worker when it starts. An exception there would take
every other format with it, or hide which package is at fault.
"""

from __future__ import annotations

from inspect import isclass
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from definition.reading import Section
from definition.sinks.base import OutputMode, SinkFormat, Supports
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FAILURES = (Exception, SystemExit)
"""What a package's code may raise; a module that was meant to be run as a program ends the process."""


class PluggedFormat(SinkFormat):
    """Comes before a package's class among the bases of what is made of it, and answers in its stead."""

    def option_faults(self, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Those of the package, or that it cannot say."""
        return self._problems("option_faults", lambda: super(PluggedFormat, self).option_faults(options))

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Those of the package, or that it cannot say."""
        return self._problems("table_faults", lambda: super(PluggedFormat, self).table_faults(table, options))

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """That of the package, or that it cannot say."""
        try:
            fault = super().output_mode_fault(options, output_mode)
        except FAILURES as error:
            return self._failed("output_mode_fault", first_line_of(error))
        return None if fault is None else str(fault)

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """What the package says, or that it cannot say."""
        try:
            return str(super().written_again(table, options))
        except FAILURES as error:
            return self._failed("written_again", first_line_of(error)) + "."

    def _problems(self, asked: str, answer: Callable[[], Iterable[Problem]]) -> list[Problem]:
        try:
            found = list(answer())
        except FAILURES as error:
            return [Problem("format", self._failed(asked, first_line_of(error)))]
        if all(isinstance(each, Problem) for each in found):
            return found
        return [Problem("format", self._failed(asked, "it is to yield sparkherd.Problem"))]

    def _failed(self, asked: str, why: str) -> str:
        return f"the package that brings {self.name} is at fault, {asked}: {why}"


def made_of(found: type[SinkFormat]) -> SinkFormat:
    """The format that a package's class is; raises whatever its constructor does."""
    members = {"__doc__": found.__doc__, "__module__": found.__module__}
    made: SinkFormat = type(found.__name__, (PluggedFormat, found), members)()
    return made


def class_fault(found: object, name: str) -> str | None:
    """Why what an entry point of that name leads to is no format, None if it is one."""
    if not (isclass(found) and issubclass(found, SinkFormat)):
        return "is no subclass of sparkherd.SinkFormat"
    if getattr(found, "name", None) != name or not isinstance(getattr(found, "writer", None), str):
        return "lacks a writer, or has another name"
    options: object = found.options
    if not (isclass(options) and issubclass(options, Section)):
        return "has options that are no sparkherd.Section"
    return _supports_fault(found.supports)


def _supports_fault(supports: object) -> str | None:
    known = get_args(OutputMode)
    modes: object = supports.output_modes if isinstance(supports, Supports) else None
    if isinstance(modes, tuple) and modes and set(modes) <= set(known):
        return None
    return f"has supports that are no sparkherd.Supports with output modes of {', '.join(known)}"


def own_fault(own: SinkFormat) -> str | None:
    """What is wrong with the rest of it; raises whatever it does when it is looked at."""
    msgspec.structs.fields(own.options)
    needs: object = own.needs
    return None if needs is None or isinstance(needs, str) else "has needs that are neither a text nor None"


def first_line_of(error: BaseException) -> str:
    """An exception of a package's in one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]
