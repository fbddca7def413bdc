"""What a definition may have JDBC drivers do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import Definition, parse_definition
from worker.query_engine import QueryError
from worker.spark.jdbc import for_check, require_harmless

POSTGRESQL = "jdbc:postgresql://db.example/shop"
STREAM = {"format": "rate"}


def definition(sink: Any = None, **source: Any) -> Definition:
    """One that joins a stream with that table."""
    document = {
        "sources": {"stream": STREAM, "table": {"static": True, **source}},
        "sql": "SELECT * FROM stream JOIN table",
        "sink": sink or {"format": "noop"},
    }
    return parse_definition(json.dumps(document).encode())


def jdbc(**options: Any) -> Definition:
    return definition(format="jdbc", options={"dbtable": "t", **options})


def refused(wanted: Definition, *allowed: str) -> QueryError:
    with pytest.raises(QueryError) as error:
        require_harmless(wanted, allowed)
    assert error.value.permanent
    return error.value


@pytest.mark.parametrize(
    "options",
    [
        {"url": POSTGRESQL},
        {"url": POSTGRESQL, "driver": "org.postgresql.Driver", "sslmode": "require", "user": "u"},
        {"url": f"{POSTGRESQL}?sslmode=verify-full&sslrootcert=/etc/ca.pem"},
        {"url": "jdbc:postgresql://logger.example/socketfactory", "sessionInitStatement": "SET x = 1"},
        {"url": "jdbc:sqlite:/data/shop.db", "driver": "org.sqlite.JDBC"},
    ],
)
def test_databases_that_are_elsewhere_are_read(options: dict[str, Any]) -> None:
    """By the drivers that are known, with options that only say how to reach them."""
    require_harmless(jdbc(**options), ())


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:derby:memory:x;create=true", "derby"),
        ("JDBC:Derby:memory:x;create=true", "derby"),
        ("  jdbc:derby:x", "derby"),
        ("jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://x'", "h2"),
        ("jdbc:hsqldb:mem:x", "hsqldb"),
        ("jdbc:hive2:///;initFile=/tmp/x", "hive2"),
        ("jdbc:mysql://h/x", "mysql"),
    ],
)
def test_a_database_that_may_run_java_is_refused(url: str, name: str) -> None:
    """With the place, and the setting that allows it; nothing else of the URL is told."""
    error = refused(jdbc(url=url))
    assert error.path == "sources.table.options.url"
    assert f"is of jdbc:{name}, whose driver may run Java in the worker" in error.cause
    assert f"--allow-jdbc {name} on" in error.cause
    assert url not in error.cause
    require_harmless(jdbc(url=url), (name,))


@pytest.mark.parametrize(
    "wanted",
    [
        jdbc(URL="jdbc:derby:x"),
        jdbc(url=POSTGRESQL, Url="jdbc:derby:x"),
        definition(format="org.apache.spark.sql.jdbc", options={"url": "jdbc:derby:x"}),
        definition(format="com.example.Any", options={"url": "jdbc:derby:x"}),
        definition(table="shop.t", options={"url": "jdbc:derby:x"}),
        definition(format="rate", sink={"format": "com.example.Any", "options": {"url": "jdbc:derby:x"}}),
    ],
)
def test_whatever_it_is_called(wanted: Definition) -> None:
    """By another name of the format, in other letters, as a table of a catalog, in a sink."""
    assert "jdbc:derby" in refused(wanted).cause


def test_a_url_that_is_none() -> None:
    """A driver may take what begins otherwise."""
    assert "does not begin as jdbc:postgresql: does" in refused(jdbc(url="derby:x")).cause


@pytest.mark.parametrize("options", [{"url": POSTGRESQL}, {}])
def test_a_driver_that_is_not_known(options: dict[str, Any]) -> None:
    """Its class would be loaded, whatever it is, and take the URL as it likes."""
    name = "org.apache.derby.jdbc.EmbeddedDriver"
    error = refused(jdbc(**options, driver=name))
    assert error.path == "sources.table.options.driver"
    assert f"--allow-jdbc {name} on" in error.cause
    require_harmless(jdbc(**options, driver=name), (name,))


def test_a_database_brings_its_driver() -> None:
    """Who allows the one allows the other."""
    mysql = jdbc(url="jdbc:mysql://h/x", driver="com.mysql.cj.jdbc.Driver")
    assert refused(mysql).path == "sources.table.options.url"
    require_harmless(mysql, ("mysql",))


@pytest.mark.parametrize(
    "url",
    [
        f"{POSTGRESQL}?socketFactory=a.B&socketFactoryArg=x",
        f"{POSTGRESQL}?user=u&%73ocketFactory=a.B",
        f"{POSTGRESQL}?sslfactory=a.B",
        f"{POSTGRESQL}?loggerLevel=TRACE&loggerFile=/tmp/x.jsp",
        "jdbc:sqlite:/data/x.db?enable_load_extension=true",
        "jdbc:sqlite::resource:http://host/x.db",
        "jdbc:mysql://h/x?autoDeserialize=true",
        "jdbc:mysql://(host=h,allowLoadLocalInfile = true)/x",
        "jdbc:mysql://address=(host=h)(%71ueryInterceptors=a.B)/x",
        "jdbc:mariadb://h/x?allowLocalInfile=true",
        "jdbc:db2://h/x:clientRerouteServerListJNDIName=ldap://x;",
    ],
)
def test_connection_strings_that_do_more_than_connect(url: str) -> None:
    """They load classes and libraries, or read and write files of the worker; of allowed databases, too."""
    assert refused(jdbc(url=url), "mysql", "mariadb", "db2").path == "sources.table.options.url"


@pytest.mark.parametrize("name", ["socketFactory", "LoggerFile", "autoDeserialize", "enable_load_extension"])
def test_the_same_as_options(name: str) -> None:
    """Spark hands what it does not know itself on to the driver."""
    wanted = jdbc(url=POSTGRESQL, **{name: "x"})
    error = refused(wanted)
    assert error.path == f"sources.table.options.{name}"
    assert f"--allow-jdbc {name.lower()} on" in error.cause
    require_harmless(wanted, (name,))


def test_a_check_sends_no_statement_but_the_query() -> None:
    """What else would be sent is left out, and connections cannot write where the driver knows how."""
    wanted = jdbc(url=POSTGRESQL, SessionInitStatement="DELETE FROM t", prepareQuery="WITH x AS (SELECT 1)")
    reading, left_out = for_check(wanted)
    assert left_out == [
        "sources.table.options.SessionInitStatement",
        "sources.table.options.prepareQuery",
    ]
    assert reading.sources["table"].options == {
        "dbtable": "t",
        "url": POSTGRESQL,
        "readOnly": "true",
        "readOnlyMode": "always",
    }
    assert reading.sources["stream"] == wanted.sources["stream"]


def test_a_check_leaves_other_sources_as_they_are() -> None:
    """Though their options be called the same."""
    wanted = parse_definition(
        b'{"source": {"format": "x", "options": {"prepareQuery": "y"}}, "sink": {"format": "noop"}}'
    )
    assert for_check(wanted) == (wanted, [])
