"""How far all tasks together were behind their topic, over time, and a drawing of it in one line of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS: Final = "▁▂▃▄▅▆▇█"
UNKNOWN: Final = "·"


class LagHistory:
    """The lag of each second that was looked at, in rows; None where nobody could tell."""

    def __init__(self) -> None:
        self._seconds: list[int | None] = []
        self._last_s: int | None = None

    def add(self, now_s: float, lag: int | None) -> None:
        """The lag at a time that never goes back; the last one of a second is that of the second."""
        second = int(now_s)
        missed = 1 if self._last_s is None else second - self._last_s
        self._last_s = second
        if missed == 0:
            self._seconds[-1] = lag
        else:
            self._seconds.extend([lag] * missed)

    @property
    def known(self) -> bool:
        """Whether it was ever known: of tasks that read no topic it is not."""
        return self.most is not None

    @property
    def most(self) -> int | None:
        """The largest one; None if it was never known."""
        return max((lag for lag in self._seconds if lag is not None), default=None)

    @property
    def last(self) -> int | None:
        """The one that was added last."""
        return self._seconds[-1] if self._seconds else None

    def drawn(self, width: int) -> str:
        """A character a second, or for several where there are more than `width`: the largest of them.

        The last character is the last second's alone.
        """
        *before, last = self._from_first_known() or [None]
        step = max(-(-len(before) // (width - 1)), 1)
        parts = [*(before[at : at + step] for at in range(0, len(before), step)), [last]]
        most = max(self.most or 0, 1)
        return "".join(_level(part, most) for part in parts) if self.known else ""

    def __str__(self) -> str:
        """The last one, as it is shown."""
        return "unknown" if self.last is None else f"{self.last:,}"

    def _from_first_known(self) -> list[int | None]:
        first = next((at for at, lag in enumerate(self._seconds) if lag is not None), len(self._seconds))
        return self._seconds[first:]


def _level(lags: Sequence[int | None], most: int) -> str:
    known = [lag for lag in lags if lag is not None]
    return LEVELS[max(known) * (len(LEVELS) - 1) // most] if known else UNKNOWN
