"""Entity tags of tasks, one or all of a group: what is said with one is meant for what was seen.

RFC 9110 §8.8 and §13.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY: Final = "*"
"""Whatever there is, as long as there is something."""

_TAG = r'(?:W/)?"[\x21\x23-\x7e]*"'
_READ: Final = re.compile(_TAG)

Tags = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:\*|{_TAG}(?:[ \t]*,[ \t]*{_TAG})*)(?![\s\S])",
        description='`*`, or entity tags: `"5f3a…", "77b0…"`',
    ),
]
"""The value of `If-Match` or `If-None-Match`."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Under which a request about a task, or a group's list of tasks, is carried out; without any, always.

    `If-Match`: only if that is there, and one of the tags is its own. `If-None-Match`: only if none is.
    """

    if_match: Tags | None = msgspec.field(default=None, name="If-Match")
    if_none_match: Tags | None = msgspec.field(default=None, name="If-None-Match")

    def is_other(self, present: str | None) -> bool:
        """Whether `If-Match` is there and not met by the tag of what there is; None when there is nothing.

        A weak tag never is one's own: it says nothing of small differences.
        """
        if self.if_match is None:
            return False
        return present is None or (self.if_match != ANY and present not in _READ.findall(self.if_match))

    def is_same(self, present: str | None) -> bool:
        """Whether `If-None-Match` is there and names what there is."""
        if self.if_none_match is None or present is None:
            return False
        tags = [tag.removeprefix("W/") for tag in _READ.findall(self.if_none_match)]
        return self.if_none_match == ANY or present in tags


ALWAYS: Final = Conditions()


def etag_of(definition: bytes | msgspec.Raw, target: str) -> str:
    """The tag of a task: of what can be changed of it, and not of how it is doing."""
    digest = blake2b(bytes(definition), digest_size=12)
    digest.update(target.encode())
    return f'"{digest.hexdigest()}"'


class ListTag:
    """The tag of a group's list of tasks, kept true as they come, change and go; their order says nothing.

    It is made of the same as a task's own: the number that grows with the list (`tasks_revision`) grows with
    what nobody asked for, too, and begins anew when a group is forgotten. One number for each task, all of
    them added up (a hash of a multiset): a list of a hundred thousand is not read through for one of them.
    """

    __slots__ = ("_count", "_sum")

    def __init__(self, tasks: Iterable[tuple[str, bytes | msgspec.Raw, str]] = ()) -> None:
        """`tasks` are the first ones, each by name, definition and target."""
        self._count = self._sum = 0
        for task in tasks:
            self.add(*task)

    def __str__(self) -> str:
        """As it stands in an `ETag`."""
        return f'"{blake2b(b"%d %d" % (self._count, self._sum), digest_size=12).hexdigest()}"'

    def add(self, name: str, definition: bytes | msgspec.Raw, target: str) -> None:
        """A task is there from now on."""
        self._count += 1
        self._sum = (self._sum + _number_of(name, definition, target)) % _NUMBERS

    def remove(self, name: str, definition: bytes | msgspec.Raw, target: str) -> None:
        """A task, as it was added, is there no more."""
        self._count -= 1
        self._sum = (self._sum - _number_of(name, definition, target)) % _NUMBERS


_NUMBER_SIZE: Final = 32
_NUMBERS: Final = 256**_NUMBER_SIZE


def _number_of(name: str, definition: bytes | msgspec.Raw, target: str) -> int:
    digest = blake2b(f"{name} {target} ".encode(), digest_size=_NUMBER_SIZE)
    digest.update(bytes(definition))
    return int.from_bytes(digest.digest(), "big")
