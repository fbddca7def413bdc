"""What a definition may have JDBC drivers do, for they run in Spark's own JVM; rules without I/O.

Some databases are in the driver itself, and their SQL calls Java: Derby, which Spark brings, H2, HSQLDB. Of
others, options of a connection load classes or open files. So a URL has to be of a database whose driver was
looked through, or that the worker allows; and only options that are known pass, those in the URL included
(docs/security.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from definition.reading import path_to
from worker.query_engine import QueryError
from worker.spark.reading.jdbc_options import OF_DRIVERS, OF_SPARK, PLAIN, STATEMENTS
from worker.spark.reading.jdbc_urls import JdbcUrl, database_of, may_be_jdbc
from worker.spark.reading.table_options import HADOOP_S, is_of_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

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
_RESOURCE: Final = ":resource:"
"""Has SQLite's driver fetch a database from any URL of Java's, into a file."""
_READ_ONLY: Final[dict[str, dict[str, str]]] = {
    "postgresql": {"readOnly": "true", "readOnlyMode": "always"},
    "sqlite": {"open_mode": "1"},
}
"""By which a driver opens connections that cannot write."""
_MAY_BE_ALLOWED: Final = re.compile(r"[A-Za-z0-9+._$-]{1,200}")
"""The names that --allow-jdbc takes, as far as they can be told in a line."""
_UNKNOWN: Final = "may reach the driver of a database, and is not known to be no harm"
_UNKNOWN_OF_TABLE: Final = (
    "is not known as an option of tables, and if the table's catalog is by JDBC, its driver is given it"
)
_OF_CONNECTION: Final = "would be put in place of what the table's catalog has"
_OF_HADOOP: Final = "is a setting of Hadoop's, which Iceberg takes from spark_conf and not from options"


class _Described(NamedTuple):
    """What Spark reads or writes: its place, and what the definition says of it."""

    path: str
    format: str
    table: str | None
    options: Mapping[str, Any]

    @property
    def is_iceberg(self) -> bool:
        """By its format, which takes a `path` for a table of whichever catalog it begins with."""
        return "iceberg" in self.format.lower()

    @property
    def is_in_catalog(self) -> bool:
        """By its name, or by that."""
        return self.table is not None or self.is_iceberg

    @property
    def is_jdbc(self) -> bool:
        """By its format, or by where it leads."""
        return "jdbc" in self.format.lower() or any(map(may_be_jdbc, self.urls))

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
        for option, value in each.options.items():
            place, stands = path_to(f"{each.path}.options", option), str(as_written.options[option])
            rules.require(each, _Given(place, option, str(value), stands))


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
    if definition.entrypoint is None and sink is not None and sink.fenced is None:
        yield _Described("sink", sink.spark_format or "", sink.table, sink.options)


def _of_source(definition: Definition, view: str, source: Source) -> _Described:
    return _Described(definition.path_of(view), source.format or "", source.table, source.options)


class _Given(NamedTuple):
    """An option: its place in the definition, its name, its value, and what is written there for it."""

    path: str
    name: str
    value: str
    written: str

    def fault(self, fault: str) -> QueryError:
        """What no setting of the worker's would allow."""
        return QueryError.at(self.path, fault, permanent=True)

    def refusal(self, why: str, name: str, written: Iterable[str]) -> QueryError:
        """Names what is to be allowed, if that is no part of a secret: if it is among what is written."""
        if name not in written:
            shown, but = "NAME", " (NAME is not shown: it comes out of a reference)"
        elif _MAY_BE_ALLOWED.fullmatch(name):
            shown, but = name, ""
        else:
            takes = "up to 200 letters, digits and + . _ $ -"
            return self.fault(f"{why.format(name=repr(name[:200]))}; a name that can be allowed has {takes}")
        allow = f"allow it with --allow-jdbc {shown} on the group's workers if that is no harm"
        return self.fault(f"{why.format(name=shown)}{but}: {allow}")


class _Rules(NamedTuple):
    """What passes in a worker."""

    allowed: frozenset[str]

    def require(self, described: _Described, given: _Given) -> None:
        """Of one option; raises QueryError."""
        name = given.name.lower()
        if name not in self.allowed and (why := _refused(described, name)):
            raise given.refusal(why, given.name, (given.name,))
        if name.startswith(HADOOP_S) and described.is_iceberg:
            raise given.fault(_OF_HADOOP)
        if name == "url":
            self._require_url(given)
        if name == "driver":
            self._require_driver(given)

    def _require_driver(self, given: _Given) -> None:
        driver = given.value.strip()
        if not driver:
            raise given.fault("is empty: name the driver's class")
        known = {name for each in {*OF_DRIVERS, *self.allowed} for name in _DRIVERS.get(each, ())}
        if driver.lower() not in known | self.allowed:
            why = "is not a driver that this worker knows to run no Java of others"
            raise given.refusal(why, driver, (given.written.strip(),))

    def _require_url(self, given: _Given) -> None:
        url, written = JdbcUrl.of(given.value), JdbcUrl.of(given.written) or JdbcUrl("", "")
        if url is None:
            raise given.fault("does not begin as jdbc:postgresql: does")
        if url.database not in OF_DRIVERS and url.database not in self.allowed:
            raise given.refusal(
                "is of jdbc:{name}, whose driver may run Java in the worker", url.name, (written.name,)
            )
        if url.database == "sqlite" and _RESOURCE in given.value.lower():
            raise given.fault(f"has {_RESOURCE}, by which the driver fetches files")
        for option in url.parameters:
            if not option:
                raise given.fault("has a value without a name")
            if option.lower() not in self.allowed | _of_database(url.database):
                why = "has {name}, which is not known to be no harm"
                raise given.refusal(why, option, written.parameters)


def _refused(described: _Described, option: str) -> str | None:
    """Why an option is not let through by itself; those of a table would be put in place of its catalog's."""
    if described.is_in_catalog:
        why = _OF_CONNECTION if option in OF_SPARK else _UNKNOWN_OF_TABLE
        return None if is_of_tables(option) else why
    of_drivers = [_of_database(database_of(url)) for url in described.urls]
    return None if option in OF_SPARK.union(*of_drivers or [PLAIN]) else _UNKNOWN


def _of_database(database: str) -> frozenset[str]:
    return OF_DRIVERS.get(database, PLAIN)


def _read_only(described: _Described) -> Mapping[str, str]:
    asked: dict[str, str] = {}
    for url in described.urls:
        asked |= _READ_ONLY.get(database_of(url), {})
    return asked
