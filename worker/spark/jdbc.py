"""What a definition may have JDBC drivers do, for they run in Spark's own JVM; rules without I/O.

Some databases are in the driver itself, and their SQL calls Java: Derby, which Spark brings, H2, HSQLDB. Of
others, options of a connection load classes or open files. So a URL has to be of a database that is known to
be elsewhere, and its options are looked through, those in the URL included (docs/security.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from definition.reading import path_to
from definition.sink import FENCED_SINKS
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from definition.document import Definition
    from definition.source import Source

KNOWN: Final = ("postgresql", "sqlite")
"""Databases that every worker reads, by what their URLs have after `jdbc:`."""
_DRIVERS: Final = {
    "postgresql": ("org.postgresql.driver",),
    "sqlite": ("org.sqlite.jdbc",),
    "mysql": ("com.mysql.cj.jdbc.driver", "com.mysql.jdbc.driver"),
    "mariadb": ("org.mariadb.jdbc.driver",),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.sqlserverdriver",),
    "oracle": ("oracle.jdbc.oracledriver", "oracle.jdbc.driver.oracledriver"),
}
"""The classes that go with a database, in lower case."""
_PROPERTIES: Final = (
    *("socketfactory", "sslfactory", "sslhostnameverifier", "sslpasswordcallback", "xmlfactoryfactory"),
    *("authenticationplugin", "interceptors", "propertiestransform", "profilereventhandler"),
    *("autodeserialize", "clientinfoprovider", "cachefactory", "loadbalancestrategy", "callbackclass"),
    *("trustmanagerclass", "jndi", "localinfile", "logger", "tracefile", "enable_load_extension"),
)
"""What stands in the names of options that load classes (MySQL, PostgreSQL, SQL Server, Db2), read or write
files of the worker (MySQL, MariaDB, PostgreSQL), or load libraries (SQLite)."""
_BEGINNING: Final = re.compile(r"(?i)\s*jdbc:([a-z0-9+._-]{1,64}):")
_NAMED_IN_URL: Final = re.compile(r"([a-z0-9_.-]+)\s*=")
_RESOURCE: Final = ":resource:"
"""Has SQLite's driver fetch a database from any URL of Java's, into a file."""
_STATEMENTS: Final = ("sessioninitstatement", "preparequery")
"""Options of Spark's whose text is sent to the database as it is, beside the query."""
_READ_ONLY: Final[dict[str, dict[str, str]]] = {
    "postgresql": {"readOnly": "true", "readOnlyMode": "always"},
    "sqlite": {"open_mode": "1"},
}
"""By which a driver opens connections that cannot write."""
_ALLOW: Final = "allow it with --allow-jdbc {name} on the group's workers if that is no harm"


def require_harmless(definition: Definition, allowed: Collection[str]) -> None:
    """See that JDBC drivers do nothing for a definition but to read databases.

    Args:
        definition: with its references resolved.
        allowed: what the worker allows besides: databases by what follows `jdbc:`, classes of drivers, names
            of connection options.

    Raises:
        QueryError: names the option, and the setting that would allow it.
    """
    known = {name.lower() for name in (*KNOWN, *allowed)}
    known |= {driver for name in known for driver in _DRIVERS.get(name, ())}
    for path, name, options in _described(definition):
        if _is_jdbc(name, options):
            for option, value in options.items():
                _require_option(path_to(f"{path}.options", option), option.lower(), str(value), known)


def for_check(definition: Definition) -> tuple[Definition, list[str]]:
    """The definition as a check reads it: databases by connections that cannot write, where there are such.

    Returns:
        It, and the places of options that are left out, because they send statements of any kind.
    """
    left_out: list[str] = []

    def reading(view: str, source: Source) -> Source:
        if not _is_jdbc(source.format, source.options):
            return source
        dropped = [name for name in source.options if name.lower() in _STATEMENTS]
        left_out.extend(path_to(f"{definition.path_of(view)}.options", name) for name in dropped)
        kept = {name: value for name, value in source.options.items() if name not in dropped}
        return msgspec.structs.replace(source, options={**kept, **_read_only(kept)})

    return definition.with_sources(reading), left_out


def _described(definition: Definition) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """The place, format and options of whatever Spark reads and writes."""
    for view, source in definition.views.items():
        yield definition.path_of(view), source.format, source.options
    sink = definition.sink
    if definition.entrypoint is None and sink is not None and sink.format not in FENCED_SINKS:
        yield "sink", sink.format, sink.options


def _is_jdbc(name: str | None, options: Mapping[str, Any]) -> bool:
    """By its format, or by its options: a table of a catalog takes those in place of its own."""
    if "jdbc" in (name or "").lower():
        return True
    return any(
        name.lower() == "driver" or (name.lower() == "url" and str(value).strip().lower().startswith("jdbc:"))
        for name, value in options.items()
    )


def _require_option(path: str, option: str, value: str, known: Collection[str]) -> None:
    if option == "url":
        _require_url(path, value, known)
    elif option == "driver" and value.strip().lower() not in known:
        raise _refused(path, "is not a driver that this worker knows to run no Java of others", value.strip())
    elif (found := _property(option)) is not None and option not in known:
        raise _refused(path, f"has the driver load classes or open files ({found})", option)


def _require_url(path: str, url: str, known: Collection[str]) -> None:
    begins = _BEGINNING.match(url)
    if begins is None:
        raise QueryError.at(path, "does not begin as jdbc:postgresql: does", permanent=True)
    name = begins[1].lower()
    if name not in known:
        raise _refused(path, f"is of jdbc:{name}, whose driver may run Java in the worker", name)
    said = unquote(unquote(url)).lower()
    if _RESOURCE in said:
        raise QueryError.at(path, f"has {_RESOURCE}, by which the driver fetches files", permanent=True)
    for option in _NAMED_IN_URL.findall(said):
        if _property(option) is not None and option not in known:
            raise _refused(path, f"has {option}, by which the driver loads classes or opens files", option)


def _property(option: str) -> str | None:
    return next((name for name in _PROPERTIES if name in option), None)


def _refused(path: str, why: str, name: str) -> QueryError:
    return QueryError.at(path, f"{why}: {_ALLOW.format(name=name[:200])}", permanent=True)


def _read_only(options: Mapping[str, Any]) -> Mapping[str, str]:
    url = next((str(value) for name, value in options.items() if name.lower() == "url"), "")
    begins = _BEGINNING.match(url)
    return _READ_ONLY.get(begins[1].lower(), {}) if begins is not None else {}
