"""Asking again for what a worker would do if it were free."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

from protocol.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errors import ErrorCode

R = TypeVar("R")

AGAIN_S: Final = 0.5
"""Between two tries, while workers are busy or the group rebalances."""


def until_free(ask: Callable[[], R], within_s: float, passes: Callable[[ErrorCode], bool]) -> R:
    """What `ask` returns, asked again for `within_s` seconds while it is refused with a code that `passes`.

    Raises:
        RefusedError: the last refusal.
    """
    until = monotonic() + within_s
    while True:
        try:
            return ask()
        except RefusedError as error:
            if not passes(error.failure.code) or monotonic() >= until:
                raise
        sleep(AGAIN_S)
