"""Lists in pages: all of it unless `limit` is there, and `next` is what to ask `after` for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from protocol.messages.base import PageQuery

T = TypeVar("T")


def page_of(
    items: Iterable[T], name_of: Callable[[T], str], asked: PageQuery
) -> tuple[tuple[T, ...], str | None]:
    """The asked page of a list that is sorted by name, and the name to go on after, None at its end.

    Names stay where they are as others come and go: nothing that stays is told twice, or never.
    """
    rest = [item for item in items if asked.after is None or name_of(item) > asked.after]
    if asked.limit is None or len(rest) <= asked.limit:
        return tuple(rest), None
    return tuple(rest[: asked.limit]), name_of(rest[asked.limit - 1])
