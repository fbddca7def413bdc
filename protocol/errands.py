"""Errands: what one member of a group is asked to do for somebody who waits for it (protocol §5, Errands).

An errand is given to a member, told in the answers to its heartbeats, fetched, done and reported. Its kind
says what it is, and which codes whoever waits may hear.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator


class ErrandCodes(NamedTuple):
    """What may become of an errand: nobody has room for it; it, its member, or its time is over."""

    busy: ErrorCode
    over: ErrorCode
    interrupted: ErrorCode
    timed_out: ErrorCode


class ErrandKind(Enum):
    """The kinds; the value of one is the field that tells of it in heartbeats, fetches and reports."""

    CHECK = "check"
    QUARANTINE = "quarantine"

    @property
    def noun(self) -> str:
        """What it is called where a person reads of it."""
        return _NOUNS[self]

    @property
    def place(self) -> str:
        """Where its `fetch` and `report` are, below the group."""
        return _PLACES[self]

    @property
    def codes(self) -> ErrandCodes:
        """Those of this kind."""
        return _CODES[self]


_NOUNS: Final = {ErrandKind.CHECK: "check", ErrandKind.QUARANTINE: "request about quarantined rows"}
_PLACES: Final = {ErrandKind.CHECK: "checks", ErrandKind.QUARANTINE: "quarantine"}
_CODES: Final = {
    ErrandKind.CHECK: ErrandCodes(
        busy=ErrorCode.TOO_MANY_CHECKS,
        over=ErrorCode.UNKNOWN_CHECK,
        interrupted=ErrorCode.CHECK_INTERRUPTED,
        timed_out=ErrorCode.CHECK_TIMED_OUT,
    ),
    ErrandKind.QUARANTINE: ErrandCodes(
        busy=ErrorCode.QUARANTINE_BUSY,
        over=ErrorCode.UNKNOWN_QUARANTINE_REQUEST,
        interrupted=ErrorCode.QUARANTINE_INTERRUPTED,
        timed_out=ErrorCode.QUARANTINE_TIMED_OUT,
    ),
}


class Told(NamedTuple):
    """Which errand of each kind a member has to do; None: none of it. Its fields are the kinds' values."""

    check: str | None = None
    quarantine: str | None = None

    def of(self, kind: ErrandKind) -> str | None:
        """The errand of that kind."""
        errand: str | None = getattr(self, kind.value)
        return errand

    def changes(self, before: Told) -> Iterator[tuple[ErrandKind, str | None]]:
        """The kinds of which there is another errand, or none, where there was one of `before`."""
        return ((kind, self.of(kind)) for kind in ErrandKind if self.of(kind) != before.of(kind))


NOTHING: Final = Told()
