"""Water-filling: loads made as level as they can be by adding to them, never taking away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def pour(amount: int, loads: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """How to add `amount` units to `loads` so that the result is as level as possible.

    Whoever gets anything ends within one of the others that do, and nobody who gets less stands lower. Where
    that leaves a choice of who gets one more, it falls on those that want it, then on the first.

    Args:
        amount: units to add, at least 0.
        loads: what each has already; not empty.
        wanted: how many of the units each would rather have than not. They get as many of these in all as
            any result so level could give them.

    Returns:
        The units each gets.
    """
    level, extra = _surface(amount, sorted(loads))
    shares = [max(0, level - load) for load in loads]
    low = [index for index, load in enumerate(loads) if load <= level]
    low.sort(key=lambda index: wanted[index] <= shares[index])
    for index in low[:extra]:
        shares[index] += 1
    return shares


def _surface(amount: int, rising: Sequence[int]) -> tuple[int, int]:
    """The level up to which `amount` fills everything, and what is left over then."""
    below = 0
    for width, load in enumerate(rising):
        if width * load - below > amount:
            break
        below += load
    else:
        width = len(rising)
    return divmod(amount + below, width)
