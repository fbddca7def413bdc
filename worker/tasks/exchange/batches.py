"""Requests of a size that a manager takes: it refuses a body above its limit as a whole (protocol §2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Item = TypeVar("Item")

MOST_BYTES: Final = 1 << 20
"""Of what is told in one request: an eighth of what a manager takes by default, and read in milliseconds."""


def encoded_size(item: object) -> int:
    """How many bytes of a request `item` takes."""
    return len(msgspec.json.encode(item))


def in_batches(
    items: Iterable[Item],
    size: Callable[[Item], int],
    *,
    most: int,
    most_bytes: Callable[[], int] = lambda: MOST_BYTES,
) -> Iterator[list[Item]]:
    """`items` in their order, in batches; an item that is too large by itself is a batch of its own.

    Args:
        items: what is to be told.
        size: how many bytes an item takes; asked when its batch is made, not for all of them at once.
        most: items in a batch.
        most_bytes: bytes in a batch, asked anew for each item: it may be found out meanwhile.
    """
    batch: list[Item] = []
    held = 0
    for item in items:
        bytes_of_it = size(item)
        if batch and (len(batch) >= most or held + bytes_of_it > most_bytes()):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += bytes_of_it
    if batch:
        yield batch


def smaller(
    batch: Sequence[Item], without_the_largest: Callable[[Item], Item | None]
) -> Iterator[Sequence[Item]]:
    """What to tell in place of a batch that the manager has found too large; nothing if it cannot be less.

    Args:
        batch: what was told.
        without_the_largest: an item without what it can be told without, None if there is no such part.
    """
    if len(batch) > 1:
        middle = len(batch) // 2
        yield batch[:middle]
        yield batch[middle:]
    elif (left := without_the_largest(batch[0])) is not None:
        yield [left]
