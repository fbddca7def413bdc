"""How long to wait before another try: doubling up to a limit, spread a little so that herds thin out."""

from __future__ import annotations

from dataclasses import dataclass

_FURTHEST_DOUBLING = 60
"""Beyond it no delay of practical use exists, and floats would overflow."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before each try; `jitter` is the share by which it may be shorter or longer."""

    first_s: float
    limit_s: float
    jitter: float = 0.2

    def delay_s(self, tries: int, chance: float) -> float:
        """Seconds to wait after `tries` tries failed before (0 after the first failure).

        Args:
            tries: failures in a row before this one.
            chance: a random number in [0, 1).
        """
        doubled = min(self.first_s * 2.0 ** min(tries, _FURTHEST_DOUBLING), self.limit_s)
        return doubled * (1 + self.jitter * (2 * chance - 1))


MANAGER = Backoff(first_s=0.1, limit_s=1.0)
"""Between requests that a manager did not answer or could not serve (protocol §7)."""
