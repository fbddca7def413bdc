"""Figures of the last while, of which ever fewer are kept the more there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Dated(Protocol):
    """Something of a moment, in milliseconds of the monotonic clock."""

    @property
    def at_ms(self) -> int:
        """When."""


Moment = TypeVar("Moment", bound=Dated)


class Moments(Generic[Moment]):
    """Those of `span_ms`, at most `most`: once there are more, every two become one, and so do later ones."""

    __slots__ = ("_kept", "_merge", "_most", "_span_ms", "_step_ms")

    def __init__(self, most: int, span_ms: int, merge: Callable[[Moment, Moment], Moment]) -> None:
        """`merge` makes one moment of two, of which the former comes first; it is as old as that one."""
        self._most = most
        self._span_ms = span_ms
        self._merge = merge
        self._step_ms = 0
        self._kept: list[Moment] = []

    def __iter__(self) -> Iterator[Moment]:
        """The oldest first."""
        return iter(self._kept)

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._kept)

    def add(self, moment: Moment) -> None:
        """A later one than all before."""
        kept = self._kept
        if kept and moment.at_ms - kept[-1].at_ms < self._step_ms:
            kept[-1] = self._merge(kept[-1], moment)
            return
        kept.append(moment)
        if kept[0].at_ms < moment.at_ms - self._span_ms:
            del kept[0]
        if len(kept) > self._most:
            self._halve()

    def since(self, at_ms: int) -> list[Moment]:
        """From that time on."""
        return [each for each in self._kept if each.at_ms >= at_ms]

    def _halve(self) -> None:
        kept = self._kept
        self._step_ms = 2 * (kept[-1].at_ms - kept[0].at_ms) // (len(kept) - 1)
        pairs = zip(kept[::2], kept[1::2], strict=False)
        rest = kept[len(kept) // 2 * 2 :]
        self._kept = [*(self._merge(*pair) for pair in pairs), *rest]
