"""The parts of `--help` that all commands have alike."""

from __future__ import annotations


def example(*lines: str) -> str:
    """The end of a command's help: how it is used, as one may type it."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
