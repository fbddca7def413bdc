"""What workers report of a task's batches: any JSON object, of which a few figures have a meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.messages.base import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST_INT: Final = -(2**63)
MOST_INT: Final = 2**64 - 1
"""Integers of 64 bits, signed or not, are what Spark's are and what every reader of JSON can take."""


def figure(metrics: Mapping[str, Any] | None, name: str) -> float | None:
    """The figure called so, None if there is none, or something that cannot be one."""
    value = (metrics or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_INT:
        return None
    return float(value)


def figures(metrics: Mapping[str, Any] | None, name: str) -> dict[str, float]:
    """The figures in the object called so, by their names; what is none is passed over."""
    told = (metrics or {}).get(name)
    if not isinstance(told, dict):
        return {}
    return {each: value for each in told if (value := figure(told, each)) is not None}


def out_of_range(value: object, path: str) -> Iterator[str]:
    """The places in `value`, which is at `path`, of integers that are none of 64 bits."""
    if isinstance(value, int):
        if not LEAST_INT <= value <= MOST_INT:
            yield path
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from out_of_range(each, f"{path}.{name}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from out_of_range(each, f"{path}[{place}]")
