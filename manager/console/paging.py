"""A long list, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Line = TypeVar("Line")

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

    def shown(self, line: Callable[[Item], Line]) -> ListPage[Line]:
        """The same page, each item as `line` shows it."""
        items = [line(item) for item in self.items]
        return ListPage(items, self.number, self.pages, self.first, self.last, self.total)


def list_page(items: Sequence[Item], asked: str | None, length: int = PAGE_LENGTH) -> ListPage[Item]:
    """The page that was asked for, or the nearest there is."""
    number = min(page_number(asked), _pages(len(items), length))
    begin = (number - 1) * length
    return page_of(items[begin : begin + length], number, len(items), length)


def page_of(items: Sequence[Item], number: int, total: int, length: int) -> ListPage[Item]:
    """A page whose items somebody else has found."""
    begin = (number - 1) * length
    first = begin + 1 if items else 0
    return ListPage(items, number, _pages(total, length), first, begin + len(items), total)


def page_number(asked: str | None) -> int:
    """What an address asks for; what is none is the first page."""
    return max(_whole(asked), 1)


def _pages(total: int, length: int) -> int:
    return max(-(-total // length), 1)


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < len("1000000") else 1
