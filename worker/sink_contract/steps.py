"""Ends or holds up a thread at one of the lines that it runs: what a crash or a freeze there would do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType


class Crash(BaseException):
    """A process ends here; what is open is left to itself."""


class Steps:
    """Counts the lines of some modules that this thread runs, and does something before one of them."""

    def __init__(self, package: str, at: int, do: Callable[[], None]) -> None:
        """Of the modules in `package`; `do` is called before line number `at`, of none if that is 0."""
        self.seen = 0
        self._package = package
        self._at = at
        self._do = do
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._enters)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)

    def _enters(self, frame: FrameType, event: str, argument: object) -> Any:
        del event, argument
        name = str(frame.f_globals.get("__name__"))
        return self._runs if name == self._package or name.startswith(f"{self._package}.") else None

    def _runs(self, frame: FrameType, event: str, argument: object) -> Any:
        del argument
        del frame
        if event == "line":
            self.seen += 1
            if self.seen == self._at:
                self._do()
        return self._runs


def spread(lines: int, steps: int) -> list[int]:
    """At most so many of the lines, from the first to the last, as far apart as they can be."""
    if lines <= steps:
        return list(range(1, lines + 1))
    return sorted({1 + at * (lines - 1) // (steps - 1) for at in range(steps)})
