"""A long list, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = TypeVar("Item")

PAGE_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Item]):
    """Page `number` of `pages`, both from 1; `first` and `last` count its items within all `total`."""

    items: Sequence[Item]
    number: int
    pages: int
    first: int
    last: int
    total: int


def list_page(items: Sequence[Item], asked: str | None, length: int = PAGE_LENGTH) -> ListPage[Item]:
    """The page that was asked for, or the nearest there is."""
    pages = max(-(-len(items) // length), 1)
    number = min(max(_whole(asked), 1), pages)
    begin = (number - 1) * length
    shown = items[begin : begin + length]
    return ListPage(shown, number, pages, begin + 1 if shown else 0, begin + len(shown), len(items))


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < len("1000000") else 1
