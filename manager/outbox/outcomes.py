"""What becomes of something that is sent."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why an event was not taken.

    Attributes:
        reason: without secrets, nor anything of a URL.
        retry_after_ms: when to come again, if that was said.
        is_final: the other side says that it will never take this one, while it may well take others.
    """

    reason: str
    retry_after_ms: int = 0
    is_final: bool = False
