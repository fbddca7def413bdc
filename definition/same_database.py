"""Whether two URLs are of one database, and two names of one table in it; rules without I/O.

What only the database could tell (another name of its host, the `search_path` of a role) is not known here.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from definition.references import resolve
from definition.same_place import normal_path
from definition.tables import TableName, read_table_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import URL

    from definition.references import Reference

_POSTGRES_PORT: Final = 5432
_PUBLIC: Final = "public"
"""PostgreSQL's schema of tables that are named without."""
_SET_ELSEWHERE: Final = frozenset({"options", "service"})
"""Parameters of a URL that may say in which schema such tables are instead."""
_PLACES: Final = frozenset({"host", "port", "dbname", "service"})
_HIDDEN_OPTIONS: Final = re.compile(r"[?&]\$\{")


def same_database(one: object, other: object) -> bool:
    """Whether two URLs of SQLAlchemy's are of one database, whoever logs in there and with what options."""
    return one == other or (isinstance(one, str) and isinstance(other, str) and _same_urls(one, other))


def same_table(url: object, sink_table: str, quarantine_table: str) -> bool:
    """Whether a quarantine beside the rows of a sink `sql` has the table of those rows.

    Args:
        url: of their database.
        sink_table: of the rows.
        quarantine_table: beside them, and in the same schema where it names none.
    """
    read = _read(url) if isinstance(url, str) else None
    rows, aside = read_table_name(sink_table), read_table_name(quarantine_table)
    aside = aside._replace(schema=aside.schema or rows.schema)
    if read is not None and read.get_backend_name() == "sqlite":
        return _folded(rows) == _folded(aside)
    if read is not None and _SET_ELSEWHERE & read.query.keys():
        return rows == aside
    return _in_public(rows) == _in_public(aside)


def shown_url(text: str) -> str:
    """A URL as a person may see it: without passwords, also among the options; references as they are."""
    references: dict[str, str] = {}

    def number(reference: Reference, path: str) -> str:
        digits = _number(reference, path)
        references[digits] = str(reference)
        return digits

    if resolve(text, "", number) in references:
        return text
    url = _read(text)
    if url is None:
        return "a URL that is a secret"
    places = {name: value for name, value in url.query.items() if name in _PLACES}
    shown = url.set(query=places).render_as_string(hide_password=True)
    for digits, reference in references.items():
        shown = shown.replace(digits, reference)
    return shown


def _in_public(name: TableName) -> TableName:
    return name._replace(schema=name.schema or _PUBLIC)


def _folded(name: TableName) -> tuple[str, ...]:
    """As SQLite tells names apart: not by the case of the letters of ASCII."""
    return tuple(re.sub("[A-Z]+", lambda letters: letters[0].lower(), part or "") for part in name)


def _same_urls(one: str, other: str) -> bool:
    first, second = _database(one), _database(other)
    return first is not None and first == second


def _database(text: str) -> tuple[Any, ...] | None:
    """Which database a URL is of; None if only who knows a secret can tell."""
    url = None if _HIDDEN_OPTIONS.search(text) else _read(text)
    if url is None:
        return None
    if url.get_backend_name() == "sqlite":
        return ("sqlite", normal_path(str(url.database)))
    query = url.normalized_query
    names = (*query.get("dbname", ()), url.database, *query.get("user", ()), url.username)
    service = (query.get("service"), query.get("hostaddr"))
    return ("postgresql", *_server(url.host, url.port, query), next(filter(None, names), None), *service)


def _read(text: str) -> URL | None:
    """A URL, with a number for each reference: the same for the same one."""
    from sqlalchemy import make_url  # noqa: PLC0415 - too heavy for whoever only imports definitions
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415 - the same

    try:
        return make_url(resolve(text, "", _number))
    except (ArgumentError, ValueError):
        return None


def _number(reference: Reference, path: str) -> str:
    del path
    return str(int.from_bytes(sha256(str(reference).encode()).digest()))


def _server(host: str | None, port: int | None, query: Mapping[str, Any]) -> tuple[str, str]:
    hosts = ",".join(query.get("host", ())) or host or ""
    ports = ",".join(query.get("port", ())) or str(port or _POSTGRES_PORT)
    return hosts.lower(), ports
