"""A database's own words without what may be a value in them; rules without I/O.

While rows are written, also an error that is not about them may quote one: a name that is looked up may be
made of a value (`name::regclass`), and so may a path, a pattern or a search. Databases set such things in
quotes, or behind a colon at the end. What is known to be a name of the task's own stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

MASK: Final = "…"
_MARK: Final = "[\"'`«»„“”‘’‚‹›「」]"  # noqa: RUF001 - quotes of other languages
_QUOTED: Final = re.compile(f"{_MARK}(.*){_MARK}|{_MARK}.*", re.DOTALL)
"""From the first quotation mark to the last one: a value may have some itself."""
_BEHIND: Final = re.compile(r"([^:]*: )(.+)", re.DOTALL)
_OF_SCHEMAS: Final = re.compile(r"no such (?:table|savepoint): ")
"""SQLite takes these names from statements and triggers, which none of its functions can make."""
_RIGHT: Final = re.compile(r"((?:permission denied for|must be owner of) [a-z ]+ )(.+)", re.DOTALL)
_SEVERAL: Final = re.compile(
    r"column \0 of relation \0 does not exist"
    r"|column \0 is of type [\w ()\[\],]+ but expression is of type [\w ()\[\],]+"
)
"""Messages of PostgreSQL's with more than a name that may be ours, a NUL for each."""


def masked(said: str, names: Collection[str], *, is_of_statement: bool) -> str:
    """The first line of a message, without values.

    Args:
        said: all of the message: where it is cut, it may end within quotes.
        names: which may be shown.
        is_of_statement: whether the message is about what a statement has in it, which may stand behind a
            colon; one of the system has there what went wrong.
    """
    shown = _RIGHT.sub(lambda found: found[1] + _name(found[2], names), said)
    if shown == said and not _SEVERAL.fullmatch(_without(said, names)):
        shown = _QUOTED.sub(lambda found: found[0] if found[1] in names else f'"{MASK}"', said)
    if is_of_statement and not _OF_SCHEMAS.match(shown):
        shown = _BEHIND.sub(lambda found: found[1] + _name(found[2], names), shown)
    return shown.strip().partition("\n")[0]


def _name(name: str, names: Collection[str]) -> str:
    """The name if it may be shown, as a sequence's may that PostgreSQL has made for a column of a table."""
    is_sequence = name.endswith("_seq") and any(name.startswith(f"{each}_") for each in names)
    return name if name in names or is_sequence else MASK


def _without(said: str, names: Collection[str]) -> str:
    """The message with a sign for each of the names in it."""
    for name in names:
        said = said.replace(f'"{name}"', "\0")
    return said
