"""How long somebody may say nothing. Rules without I/O."""

from __future__ import annotations


class Silence:
    """Counts looks at which nothing new had been heard.

    Not by the clock: who was frozen itself has not looked meanwhile, and must not take the time that it has
    lost for the other's.
    """

    def __init__(self, limit_s: float, every_s: float) -> None:
        """Silence of `limit_s` seconds is too long; somebody looks every `every_s` seconds."""
        self._limit = max(1, round(limit_s / every_s))
        self._looks = 0

    def heard(self) -> None:
        """There was a word."""
        self._looks = 0

    def look(self) -> bool:
        """One more look; whether the silence is too long by now."""
        self._looks += 1
        return self._looks >= self._limit
