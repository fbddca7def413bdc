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
RAISED = [*ENDING, futures.CancelledError("enough"), StopIteration("enough"), Unspeakable(), Ending()]


def kind_of(error: object) -> str:
    """Its name among a test's parameters."""
    return type(error).__name__
