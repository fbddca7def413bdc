"""What the URL of a SQL sink may be: all of it that can be known without its database, or its driver.

The manager asks when a task is created, the worker when it has put in the secrets and when it connects. No
fault quotes a value: any may be a password.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from definition.references import specimen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import URL

DATABASES: Final = ("sqlite", "postgresql")
MAX_TIMEOUT_S: Final = 2_000_000
"""SQLite counts milliseconds in 32 bits."""
MAX_PORT: Final = 65_535
_NO_URL = "is not a SQLAlchemy URL, such as sqlite:///out.db or postgresql://user:password@host/database"
_WORDS = frozenset({"true", "yes", "on", "y", "t", "1", "false", "no", "off", "n", "f", "0"})
"""Of yes and no, as SQLAlchemy has them."""
_SEVERAL = frozenset({"host", "port", "options"})
"""Parameters of libpq that may be there more than once."""
_NAME = re.compile(r"[A-Za-z_]{1,40}")
_WITH_PORT = re.compile(r"[A-Za-z0-9.-]*:[0-9]*")
_MIXED = "has options host and port of two kinds: write host=a,b&port=1,2, or host=a:1&host=b:2"
_NO_PORT = "has a port in its options that is not a number from 1 to 65535"
_CUT = "has an @ after the one that ends the password: write @ in a password as %40"
_COUNT = re.compile(r"[0-9]{1,6}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def url_fault(text: str) -> str | None:
    """What is wrong with a URL; what stands for a secret, or beside one, is for the worker to check."""
    shown = specimen(text)
    if shown is None:
        return None
    if "\0" in shown:
        return "must not contain NUL, which databases refuse"
    url = _read(shown)
    if url is None:
        return _NO_URL
    backend = url.get_backend_name()
    if backend not in DATABASES:
        return f"must be of {' or '.join(DATABASES)}"
    is_whole = shown == text
    fault = _password_fault(url, shown) if backend == "postgresql" else _file_fault(url) if is_whole else None
    if fault is not None:
        return fault
    has_secret_options = not is_whole and "${" in text.partition("?")[2]
    return None if has_secret_options else _options_fault(url)


def _read(text: str) -> URL | None:
    from sqlalchemy import make_url  # noqa: PLC0415 - too heavy for whoever only imports definitions
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415 - the same

    try:
        url = make_url(text)
        url.normalized_query.get("")
    except (ArgumentError, ValueError):
        return None
    return url


def _password_fault(url: URL, text: str) -> str | None:
    """SQLAlchemy ends a password at its first `@`: the rest would be told as the host that is not found."""
    if url.password is None:
        return None
    rest = f"{url.host or ''}{url.database or text.partition('?')[2]}"
    return _CUT if "@" in rest else None


def _file_fault(url: URL) -> str | None:
    if url.host or url.username or url.password or url.port:
        return "has a host, and SQLite has none: write sqlite:///out.db, or sqlite:////var/out.db"
    if url.database in {None, "", ":memory:"}:
        return "must name a file: rows in memory would be lost with the worker"
    return None


def _options_fault(url: URL) -> str | None:
    query = url.normalized_query
    faults = _sqlite_faults(query) if url.get_backend_name() == "sqlite" else _postgresql_faults(query)
    return next(faults, None)


def _sqlite_faults(query: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, values in query.items():
        if name not in _SQLITE:
            yield f"has an option that SQLite has not: its options are {', '.join(_SQLITE)}"
        elif len(values) > 1:
            yield f"has the option {name} twice"
        elif not _SQLITE[name][0](values[0]):
            yield f"has an option {name} that is not {_SQLITE[name][1]}"


def _postgresql_faults(query: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, values in query.items():
        if "\0" in name + "".join(values):
            yield "must not contain NUL, which databases refuse"
        elif name == "conninfo":
            yield "has an option conninfo, which would be a URL in the URL: write its parameters themselves"
        elif len(values) > 1 and name not in _SEVERAL:
            yield f"has the option {name if _NAME.fullmatch(name) else 'of one name'} twice"
    if any(not _WHOLE.fullmatch(value) for value in query.get("connect_timeout", ())):
        yield "has an option connect_timeout that is not a whole number of seconds"
    yield from _place_faults(query.get("host", ()), query.get("port", ()))


def _place_faults(hosts: Sequence[str], ports: Sequence[str]) -> Iterator[str]:
    """As SQLAlchemy reads them: `host=a,b&port=1,2`, or `host=a:1&host=b:2`, and no mixture."""
    if len(hosts) > 1 or any(map(_WITH_PORT.fullmatch, hosts)):
        if ports:
            yield _MIXED
        elif not all(_is_port(host.partition(":")[2]) for host in hosts):
            yield _NO_PORT
        return
    names = hosts[0].split(",") if hosts else [""]
    numbers = [number for port in ports for number in port.split(",")]
    if len(names) > 1 and any(map(_WITH_PORT.fullmatch, names)):
        yield _MIXED
    elif not all(map(_is_port, numbers)):
        yield _NO_PORT
    elif numbers and len(numbers) != len(names):
        yield "has options host and port of different number: give a port for each host, host=a,b&port=1,2"


def _is_port(text: str) -> bool:
    return text == "" or (_COUNT.fullmatch(text) is not None and 0 < int(text) <= MAX_PORT)


def _is_time(text: str) -> bool:
    try:
        seconds = float(text)
    except ValueError:
        return False
    return math.isfinite(seconds) and 0 <= seconds <= MAX_TIMEOUT_S


def _is_count(text: str) -> bool:
    return _COUNT.fullmatch(text) is not None


def _is_word(text: str) -> bool:
    return text.strip().lower() in _WORDS


_SQLITE: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "cached_statements": (_is_count, "a whole number below 1,000,000"),
    "check_same_thread": (_is_word, "true or false"),
    "timeout": (_is_time, f"a number of seconds from 0 to {MAX_TIMEOUT_S:,}"),
}
"""The options of SQLite's that SQLAlchemy hands on."""
