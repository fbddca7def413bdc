"""Whether two sinks write to one place, as far as their definitions say; rules without I/O.

One place may be written in many ways. What only a file system, a catalog or a database could tell (links,
relative folders, views, what a secret stands for) is not known here.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from definition.references import specimen
from definition.tables import TableName, read_table_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from definition.sink import Sink

_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>/.*|$)")
_SAME_SCHEME: Final = {"s3": "s3a", "s3n": "s3a"}
_PARTS: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_USUAL: Final = ("spark_catalog", "default")
"""The catalog and the namespace of a table that is named without."""
_POSTGRES_PORT: Final = 5432


def same_place(one: Sink, other: Sink) -> str | None:
    """What in the definition of `other` names the place of `one`, or one in it or around it; None if none."""
    paths = [path for each in (one, other) if (path := _path(each)) is not None]
    if len(paths) > 1:
        return "options.path" if _overlap(*paths) else None
    if one.table is not None and other.table is not None:
        return "table" if _spark_table(one.table) == _spark_table(other.table) else None
    return None


def same_database(one: object, other: object) -> bool:
    """Whether two URLs of SQLAlchemy's are of one database, whoever logs in there and with what options."""
    return one == other or (isinstance(one, str) and isinstance(other, str) and _same_urls(one, other))


def same_table(sink_table: str, quarantine_table: str, *, folds: bool) -> bool:
    """Whether a quarantine beside the rows of a sink `sql` has the table of those rows.

    Args:
        sink_table: of the rows.
        quarantine_table: beside them, and in the same schema where it names none.
        folds: whether the database tells no names apart by case.
    """
    rows, aside = read_table_name(sink_table), read_table_name(quarantine_table)
    names = _known(rows), _known(TableName(aside.schema or rows.schema, aside.table))
    return len({str(name).lower() if folds else str(name) for name in names}) == 1


def _known(name: TableName) -> TableName:
    """PostgreSQL's schema of tables that are named without."""
    return name._replace(schema=name.schema or "public")


def _path(sink: Sink) -> str | None:
    path = sink.options.get("path")
    return path if isinstance(path, str) else None


def _overlap(one: str, other: str) -> bool:
    """Whether they are one folder, or one is in the other: who tidies that up would take both."""
    first, second = sorted((_folder(one), _folder(other)), key=len)
    return second == first or second.startswith(first.rstrip("/") + "/")


def _folder(path: str) -> str:
    """A folder in one way of writing it: without `file:`, and other schemes in lower case."""
    url = _URL.match(path.strip())
    if url is None:
        return _normal(path.strip())
    scheme = url["scheme"].lower()
    if scheme == "file":
        return _normal(url["path"])
    return f"{_SAME_SCHEME.get(scheme, scheme)}://{url['host'] or ''}{_normal(url['path'])}"


def _normal(path: str) -> str:
    return posixpath.normpath(re.sub("/+", "/", path))


def _spark_table(name: str) -> tuple[str, ...]:
    """Its parts, whose case counts nowhere that two such tables would be told apart on purpose."""
    parts = [(quoted or plain).replace("``", "`").lower() for quoted, plain in _PARTS.findall(name)]
    return (*_USUAL[: max(len(_USUAL) + 1 - len(parts), 0)], *parts)


def _same_urls(one: str, other: str) -> bool:
    first, second = _database(one), _database(other)
    return first is not None and first == second


def _database(text: str) -> tuple[Any, ...] | None:
    """Which database a URL is of; None if only who knows a secret can tell."""
    from sqlalchemy import make_url  # noqa: PLC0415 - too heavy for whoever only imports definitions
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415 - the same

    if "${" in text.rpartition("@")[2]:
        return None
    try:
        url = make_url(specimen(text) or "")
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() == "sqlite":
        return ("sqlite", _normal(str(url.database)))
    return ("postgresql", *_server(url.host, url.port, url.normalized_query), url.database or url.username)


def _server(host: str | None, port: int | None, query: Mapping[str, Any]) -> tuple[str, str]:
    hosts = ",".join(query.get("host", ())) or host or ""
    ports = ",".join(query.get("port", ())) or str(port or _POSTGRES_PORT)
    return hosts.lower(), ports
