"""URLs of databases, taken apart as their drivers take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from worker.spark.reading.jdbc_options import OF_DRIVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_JDBC: Final = re.compile(r"(?i)[\s\x00-\x20]*jdbc:")
_BEGINNING: Final = re.compile(r"(?i)\s*jdbc:([a-z0-9+._-]{1,64}):")


class JdbcUrl(NamedTuple):
    """`jdbc:NAME:REST`."""

    name: str
    rest: str

    @classmethod
    def of(cls, text: str) -> JdbcUrl | None:
        """None if it does not begin so."""
        begins = _BEGINNING.match(text)
        return None if begins is None else cls(begins[1], text[begins.end() :])

    @property
    def database(self) -> str:
        """The name, which drivers take in any letters."""
        return self.name.lower()

    @property
    def parameters(self) -> Iterator[str]:
        """Their names, as the driver takes a URL apart; of unknown drivers, whatever may be one.

        A known name that is encoded is none that is known.
        """
        before, _, query = self.rest.partition("?")
        if self.database not in OF_DRIVERS:
            yield from _names_before(unquote(unquote(before)))
        for piece in re.split("&" if self.database in OF_DRIVERS else "[;&?]", query):
            if piece:
                yield piece.partition("=")[0].strip()


def may_be_jdbc(text: str) -> bool:
    """Whether some driver may take it for a URL of its own: Java's `trim` takes control characters away."""
    return _JDBC.match(text) is not None


def database_of(text: str) -> str:
    """Its name in lower case; empty if the URL does not begin as one of JDBC's does."""
    url = JdbcUrl.of(text)
    return "" if url is None else url.database


def _names_before(hosts: str) -> Iterator[str]:
    """Those among hosts, in brackets or after semicolons."""
    for piece in re.split(r"[;&,()]", hosts):
        name, is_said, _ = piece.partition("=")
        if is_said:
            yield re.split(r"[/:@\s]", name.strip())[-1]
