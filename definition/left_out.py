"""By what the rows of a task are counted that do not go to its sink (protocol §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from definition.expectations import MOST_EXPECTATIONS
from definition.sinks.registry import sink_format

if TYPE_CHECKING:
    from collections.abc import Sequence

UNREADABLE: Final = "unreadable"
REFUSED: Final = "refused"
"""By which rows are counted that no expectation is about."""
MOST_REASONS: Final = MOST_EXPECTATIONS + 2
"""Of a task."""


class Reasons(NamedTuple):
    """What rows of a task may be left out for: names of expectations, `UNREADABLE` and `REFUSED`.

    Args:
        dropped: those whose rows are left out for good.
        quarantined: those whose rows are put aside.
    """

    dropped: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Both."""
        return self.dropped + self.quarantined


class _Expectation(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def on_violation(self) -> str: ...


class _Sink(Protocol):
    @property
    def format(self) -> str | None: ...


class _Sifting(Protocol):
    """The parts of a definition that say which of its rows may be left out."""

    @property
    def expect(self) -> Sequence[_Expectation]: ...

    @property
    def on_error(self) -> str: ...

    @property
    def sink(self) -> _Sink | None: ...


def reasons_of(definition: _Sifting) -> Reasons:
    """What rows of a task with this definition may be left out for."""
    dropped = [each.name for each in definition.expect if each.on_violation == "drop"]
    quarantined = [each.name for each in definition.expect if each.on_violation == "quarantine"]
    if definition.on_error == "quarantine":
        quarantined.append(UNREADABLE)
        own = None if definition.sink is None else sink_format(definition.sink.format)
        if own is not None and own.supports.refused_rows:
            quarantined.append(REFUSED)
    return Reasons(tuple(dropped), tuple(quarantined))


class _ReadExpectation(msgspec.Struct):
    name: str
    on_violation: str = "fail"


class _ReadSink(msgspec.Struct):
    format: str | None = None


class _Read(msgspec.Struct):
    expect: tuple[_ReadExpectation, ...] = ()
    on_error: str = "fail"
    sink: _ReadSink | None = None


def reasons_in(document: bytes | msgspec.Raw) -> Reasons:
    """`reasons_of` a document that was found sound before, without reading all of it.

    None of one that this version cannot read: another one may have stored it.
    """
    try:
        return reasons_of(msgspec.json.decode(document, type=_Read))
    except msgspec.ValidationError:
        return Reasons()
