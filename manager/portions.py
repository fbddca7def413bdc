"""Many at a time, but not all."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")


def portions(everything: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """All of it in order, up to `size` at a time."""
    return (everything[start : start + size] for start in range(0, len(everything), size))
