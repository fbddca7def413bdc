"""Formats that packages plug in, kept from harming whoever asks them: what they get wrong is told as a fault.

A manager asks them when it is handed a definition, and a worker when it starts. An exception there would take
every other format with it, or hide which package is at fault. What a package's class has as attributes is
read once, when the format is loaded: another reading might give something else, or raise.
"""

from __future__ import annotations

from inspect import isclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from definition.reading import Section
from definition.sinks.base import SinkFormat, Supports
from protocol.messages.tasks import Problem
from telemetry.foreign_errors import FAILURES, first_line_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")


class NoFormatError(Exception):
    """What an entry point leads to is no format; the text goes on from where it is."""


class PluggedFormat(SinkFormat):
    """Answers in the stead of a package's format; a subclass has the attributes that were read from that."""

    def __init__(self, own: SinkFormat) -> None:
        self._own = own

    def option_faults(self, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Those of the package, or that it cannot say."""
        return self._problems("option_faults", lambda: self._own.option_faults(options))

    def table_faults(self, table: str | None, options: Mapping[str, Any]) -> Iterable[Problem]:
        """Those of the package, or that it cannot say."""
        return self._problems("table_faults", lambda: self._own.table_faults(table, options))

    def output_mode_fault(self, options: Mapping[str, Any], output_mode: str) -> str | None:
        """That of the package, or that it cannot say."""
        try:
            return as_sent(self._own.output_mode_fault(options, output_mode), str | None)
        except FAILURES as error:
            return self._failed("output_mode_fault", first_line_of(error))

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """What the package says, or that it cannot say."""
        try:
            return as_sent(self._own.written_again(table, options), str)
        except FAILURES as error:
            return self._failed("written_again", first_line_of(error)) + "."

    def _problems(self, asked: str, answer: Callable[[], Iterable[Problem]]) -> Iterable[Problem]:
        try:
            found = list(answer())
            if all(isinstance(each, Problem) for each in found):
                return as_sent(found, tuple[Problem, ...])
        except FAILURES as error:
            return [Problem("format", self._failed(asked, first_line_of(error)))]
        return [Problem("format", self._failed(asked, "it is to yield sparkherd.Problem"))]

    def _failed(self, asked: str, why: str) -> str:
        return f"the package that brings {self.name} is at fault, {asked}: {why}"


def made_of(found: object, name: str) -> SinkFormat:
    """The format that an entry point of that name leads to.

    Raises:
        NoFormatError: it is none.
        BaseException: whatever a package's code does when it is made or looked at.
    """
    if not (isclass(found) and issubclass(found, SinkFormat)):
        raise NoFormatError("is no subclass of sparkherd.SinkFormat")
    own: SinkFormat = found()
    attributes = {
        "__doc__": as_sent(found.__doc__, str | None),
        "name": name,
        "writer": _writer(own, name),
        "options": _options(own),
        "supports": _supports(own),
        "needs": _needs(own),
    }
    made: SinkFormat = type("PluggedFormat", (PluggedFormat,), attributes)(own)
    return made


def _writer(own: SinkFormat, name: str) -> str:
    writer: object = getattr(own, "writer", None)
    if getattr(own, "name", None) != name or not isinstance(writer, str):
        raise NoFormatError("lacks a writer, or has another name")
    return as_sent(writer, str)


def _options(own: SinkFormat) -> type[Section]:
    options: object = own.options
    if not (isclass(options) and issubclass(options, Section)):
        raise NoFormatError("has options that are no sparkherd.Section")
    msgspec.structs.fields(options)
    return options


def _supports(own: SinkFormat) -> Supports:
    supports: object = own.supports
    if not isinstance(supports, Supports):
        raise NoFormatError("has supports that are no sparkherd.Supports")
    try:
        return as_sent(supports, Supports)
    except msgspec.ValidationError as error:
        raise NoFormatError(f"has supports that are wrong: {first_line_of(error)}") from error


def _needs(own: SinkFormat) -> str | None:
    needs: object = own.needs
    if needs is not None and not isinstance(needs, str):
        raise NoFormatError("has needs that are neither a text nor None")
    return as_sent(needs, str | None)


def as_sent(value: object, kind: type[T] | Any) -> T:
    """`value` as whoever is sent it reads it: of exactly these types, which constructors of Structs let be.

    Raises:
        Exception: it cannot be written as JSON, or is of another type.
    """
    read: T = msgspec.json.decode(msgspec.json.encode(value), type=kind)
    return read
