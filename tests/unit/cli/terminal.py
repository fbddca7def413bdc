"""A terminal that keeps what it was sent."""

from __future__ import annotations


class Terminal:
    """What a terminal was sent."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Take it."""
        self.text += text
        return len(text)

    def flush(self) -> None:
        """It is there already."""

    def isatty(self) -> bool:
        """For sure."""
        return True
