"""A loop that runs nothing but timers, on a clock that is moved by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """Its time passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.looks = 0
        self.reported: list[Exception] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Loop:
        self.timers.append((when, call))
        return self

    def call_soon(self, call: Callable[[str], None], one: str) -> None:
        try:
            call(one)
        except Exception as error:  # noqa: BLE001 - as asyncio's does
            self.reported.append(error)

    def move(self, seconds: float) -> None:
        """Let so much time pass, and what is due happen."""
        self.now += seconds
        while late := [timer for timer in self.timers if timer[0] <= self.now]:
            self.timers.remove(late[0])
            self.looks += 1
            late[0][1]()
