"""What the code of others may raise: one of each kind that harmed somebody else."""

from __future__ import annotations

import asyncio
from concurrent import futures
from typing import Any


class Unspeakable(Exception):  # noqa: N818 - somebody else's
    """Raises itself where it is shown."""

    def __str__(self) -> str:
        raise self


class Ending(Exception):  # noqa: N818 - somebody else's
    """Ends the process where it is shown."""

    def __str__(self) -> str:
        raise SystemExit(5)


class Words(str):
    """A text that is none of Python's."""

    __slots__ = ()

    def __format__(self, _: str) -> str:
        raise SystemExit(5)

    def __len__(self) -> int:
        return 0


class Wordy(Exception):  # noqa: N818 - somebody else's
    """Its words do harm themselves."""

    def __str__(self) -> str:
        return Words("enough")


class Nameless(type):
    """Its classes end the process where their names are asked for."""

    @property
    def __name__(cls) -> Any:  # type: ignore[override]  # as others may have it
        raise SystemExit(6)


class Anonymous(Exception, metaclass=Nameless):  # noqa: N818 - somebody else's
    """Of such a class."""


class Liar(Exception):  # noqa: N818 - somebody else's
    """Not even its class can be asked for."""

    @property  # type: ignore[misc]  # as others may have it
    def __class__(self) -> Any:
        raise LookupError("none")


class Cancelled(BaseException):
    """As trio and gevent have them: no exception that programs catch."""


ENDING = [
    SystemExit("usage"),
    KeyboardInterrupt("enough"),
    GeneratorExit("enough"),
    asyncio.CancelledError("enough"),
    Cancelled("enough"),
]
"""What no `except Exception` catches."""
RAISED = [
    *ENDING,
    futures.CancelledError("enough"),
    StopIteration("enough"),
    Unspeakable(),
    Ending(),
    Wordy(),
]


UNNAMED = [Anonymous, Liar]
"""What cannot be a parameter of a test: its tools ask what that is."""


def kind_of(error: object) -> str:
    """Its name among a test's parameters."""
    return type(error).__name__
