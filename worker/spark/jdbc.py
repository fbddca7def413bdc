"""What a definition may have JDBC drivers do, for they run in Spark's own JVM; rules without I/O.

Some databases are in the driver itself, and their SQL calls Java: Derby, which Spark brings, H2, HSQLDB. Of
others, options of a connection load classes or open files. So a URL has to be of a database whose driver was
looked through, or that the worker allows; and only options that are known pass, those in the URL included
(docs/security.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from definition.reading import path_to
from definition.sink import FENCED_SINKS
from worker.query_engine import QueryError
from worker.spark.jdbc_options import OF_DRIVERS, OF_SPARK, OF_TABLES, PLAIN, STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from definition.document import Definition
    from definition.source import Source

_DRIVERS: Final = {
    "postgresql": ("org.postgresql.driver",),
    "sqlite": ("org.sqlite.jdbc",),
    "mysql": ("com.mysql.cj.jdbc.driver", "com.mysql.jdbc.driver"),
    "mariadb": ("org.mariadb.jdbc.driver",),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.sqlserverdriver",),
    "oracle": ("oracle.jdbc.oracledriver", "oracle.jdbc.driver.oracledriver"),
}
"""The classes that go with a database, in lower case."""
_JDBC: Final = re.compile(r"(?i)[\s\x00-\x20]*jdbc:")
_BEGINNING: Final = re.compile(r"(?i)\s*jdbc:([a-z0-9+._-]{1,64}):")
_RESOURCE: Final = ":resource:"
"""Has SQLite's driver fetch a database from any URL of Java's, into a file."""
_READ_ONLY: Final[dict[str, dict[str, str]]] = {
    "postgresql": {"readOnly": "true", "readOnlyMode": "always"},
    "sqlite": {"open_mode": "1"},
}
"""By which a driver opens connections that cannot write."""
_ALLOW: Final = "allow it with --allow-jdbc {name} on the group's workers if that is no harm"


class _Described(NamedTuple):
    """What Spark reads or writes: its place, and what the definition says of it."""

    path: str
    format: str
    table: str | None
    options: Mapping[str, Any]

    @property
    def is_in_catalog(self) -> bool:
        """Iceberg takes a `path` for a table of whichever catalog it begins with."""
        return self.table is not None or "iceberg" in self.format.lower()

    @property
    def is_jdbc(self) -> bool:
        """By its format, or by where it leads."""
        return "jdbc" in self.format.lower() or any(_JDBC.match(url) for url in self.urls)

    @property
    def urls(self) -> list[str]:
        """Names of options are one whatever their letters, so there may be several."""
        return [str(value) for name, value in self.options.items() if name.lower() == "url"]


def require_harmless(definition: Definition, written: Definition, allowed: Collection[str]) -> None:
    """See that JDBC drivers do nothing for a definition but to read databases.

    Args:
        definition: with its references resolved.
        written: as it was given: nothing is told but what stands there.
        allowed: what the worker allows besides: databases by what follows `jdbc:`, classes of drivers, names
            of connection options.

    Raises:
        QueryError: names the option, and the setting that would allow it.
    """
    rules = _Rules(frozenset(name.lower() for name in allowed))
    for each, as_written in zip(_described(definition), _described(written), strict=True):
        if not (each.is_jdbc or each.is_in_catalog):
            continue
        options = rules.options(each)
        for option, value in each.options.items():
            place = _Place(path_to(f"{each.path}.options", option), str(as_written.options[option]))
            rules.require(place, option, str(value), options)


def for_check(definition: Definition) -> tuple[Definition, list[str]]:
    """The definition as a check reads it: databases by connections that cannot write, where there are such.

    Returns:
        It, and the places of options that are left out, because they send statements of any kind.
    """
    left_out: list[str] = []

    def reading(view: str, source: Source) -> Source:
        each = _of_source(definition, view, source)
        if not (each.is_jdbc or each.is_in_catalog):
            return source
        dropped = [name for name in source.options if name.lower() in STATEMENTS]
        left_out.extend(path_to(f"{each.path}.options", name) for name in dropped)
        asked = _read_only(each)
        rivals = {*dropped, *(name for name in source.options if name.lower() in map(str.lower, asked))}
        kept = {name: value for name, value in source.options.items() if name not in rivals}
        return msgspec.structs.replace(source, options={**kept, **asked})

    return definition.with_sources(reading), left_out


def _described(definition: Definition) -> Iterator[_Described]:
    """Whatever Spark reads and writes."""
    for view, source in definition.views.items():
        yield _of_source(definition, view, source)
    sink = definition.sink
    if definition.entrypoint is None and sink is not None and sink.format not in FENCED_SINKS:
        yield _Described("sink", sink.format or "", sink.table, sink.options)


def _of_source(definition: Definition, view: str, source: Source) -> _Described:
    return _Described(definition.path_of(view), source.format or "", source.table, source.options)


class _Place(NamedTuple):
    """An option's place in the definition, and what is written there."""

    path: str
    written: str

    def refusal(self, why: str, name: str) -> QueryError:
        """Names what is to be allowed, if that is no part of a secret: if it stands in the definition."""
        is_written = name in self.written
        shown = name[:200] if is_written else "NAME"
        secret = "" if is_written else " (NAME is not shown: it comes out of a reference)"
        fault = f"{why.format(name=shown)}{secret}: {_ALLOW.format(name=shown)}"
        return QueryError.at(self.path, fault, permanent=True)


class _Rules(NamedTuple):
    """What passes in a worker."""

    allowed: frozenset[str]

    def options(self, described: _Described) -> Collection[str]:
        """The options that it may have; those of a table would be put in place of its catalog's."""
        if described.is_in_catalog:
            return self.allowed | OF_TABLES
        of_drivers = [_of_database(_database(url)) for url in described.urls]
        return (self.allowed | OF_SPARK).union(*of_drivers or [PLAIN])

    def require(self, place: _Place, option: str, value: str, options: Collection[str]) -> None:
        """Of one option; raises QueryError."""
        if option.lower() not in options:
            why = "may reach the driver of a database, and is not known to be no harm"
            raise _Place(place.path, option).refusal(why, option)
        if option.lower() == "url":
            self._require_url(place, value)
        if option.lower() == "driver":
            self._require_driver(place, value.strip())

    def _require_driver(self, place: _Place, driver: str) -> None:
        if not driver:
            raise QueryError.at(place.path, "is empty: name the driver's class", permanent=True)
        known = {name for each in {*OF_DRIVERS, *self.allowed} for name in _DRIVERS.get(each, ())}
        if driver.lower() not in known | self.allowed:
            raise place.refusal("is not a driver that this worker knows to run no Java of others", driver)

    def _require_url(self, place: _Place, url: str) -> None:
        begins = _BEGINNING.match(url)
        if begins is None:
            raise QueryError.at(place.path, "does not begin as jdbc:postgresql: does", permanent=True)
        name, database = begins[1], begins[1].lower()
        if database not in OF_DRIVERS and database not in self.allowed:
            raise place.refusal("is of jdbc:{name}, whose driver may run Java in the worker", name)
        if database == "sqlite" and _RESOURCE in url.lower():
            fault = f"has {_RESOURCE}, by which the driver fetches files"
            raise QueryError.at(place.path, fault, permanent=True)
        for option in _names_in(database, url[begins.end() :]):
            if option.lower() not in self.allowed | _of_database(database):
                raise place.refusal("has {name}, which is not known to be no harm", option)


def _database(url: str) -> str:
    begins = _BEGINNING.match(url)
    return begins[1].lower() if begins is not None else ""


def _of_database(database: str) -> frozenset[str]:
    return OF_DRIVERS.get(database, PLAIN)


def _names_in(database: str, url: str) -> Iterator[str]:
    """The names of parameters, as the driver takes a URL apart; of unknown drivers, whatever may be one.

    A known name that is encoded is none that is known.
    """
    before, _, query = url.partition("?")
    if database not in OF_DRIVERS:
        for piece in re.split(r"[;&,()]", unquote(unquote(before))):
            name, is_said, _ = piece.partition("=")
            if is_said:
                yield re.split(r"[/:@\s]", name.strip())[-1]
    for piece in re.split("&" if database in OF_DRIVERS else "[;&?]", query):
        if piece:
            yield piece.partition("=")[0].strip()


def _read_only(described: _Described) -> Mapping[str, str]:
    asked: dict[str, str] = {}
    for url in described.urls:
        asked |= _READ_ONLY.get(_database(url), {})
    return asked
