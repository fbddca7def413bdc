"""What a definition may have JDBC drivers do."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import msgspec
import pytest

from definition.document import Definition, parse_definition
from tests.fakes.spark_backend import FakeBackend
from worker.query_engine import CheckSpec, QueryError, QuerySpec
from worker.settings import WorkerSettings
from worker.spark.checks.check import check
from worker.spark.errand_runs import Cancellation
from worker.spark.launch import launch
from worker.spark.reading.jdbc import for_check, require_harmless
from worker.spark.reading.jdbc_options import OF_SPARK, READING, STATEMENTS
from worker.spark.reading.table_options import NAMES
from worker.spark.settings import SparkSettings
from worker.spark.starts import StartSteps

POSTGRESQL = "jdbc:postgresql://db.example/shop"
SQLITE = "jdbc:sqlite:/data/shop.db"
STREAM = {"format": "rate"}
DERBY = "org.apache.derby.jdbc.EmbeddedDriver"
DRIVERS = {
    "postgresql": ["org.postgresql.Driver"],
    "sqlite": ["org.sqlite.JDBC"],
    "mysql": ["com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver"],
    "mariadb": ["org.mariadb.jdbc.Driver"],
    "sqlserver": ["com.microsoft.sqlserver.jdbc.SQLServerDriver"],
    "oracle": ["oracle.jdbc.OracleDriver", "oracle.jdbc.driver.OracleDriver"],
}


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


def in_catalog(**options: Any) -> Definition:
    return definition(table="shop.t", options=options)


ALLOWED = get_type_hints(WorkerSettings, include_extras=True)["allow_jdbc"]


def passes(wanted: Definition, *allowed: str) -> None:
    require_harmless(wanted, wanted, msgspec.convert(allowed, ALLOWED))


def refused(wanted: Definition, *allowed: str, written: Definition | None = None) -> QueryError:
    with pytest.raises(QueryError) as error:
        require_harmless(wanted, written or wanted, msgspec.convert(allowed, ALLOWED))
    assert error.value.permanent
    return error.value


@pytest.mark.parametrize(
    "options",
    [
        {"url": POSTGRESQL},
        {"url": POSTGRESQL, "driver": "org.postgresql.Driver", "sslmode": "require", "user": "u"},
        {"url": f"{POSTGRESQL}?sslmode=verify-full&&sslrootcert=/etc/ca.pem"},
        {"url": f"{POSTGRESQL}?user=u&password=XYjndi=z;socketFactory=(a,logger=b)?tracefile=="},
        {"url": "jdbc:postgresql://logger.example/socketfactory=x", "sessionInitStatement": "SET x = 1"},
        {"url": f"{POSTGRESQL}?ApplicationName=:resource:"},
        {"url": SQLITE, "driver": " org.sqlite.JDBC ", "Open_Mode": 1},
        {"url": f"{SQLITE}?mode=ro&cache=shared&journal_mode=WAL"},
        dict.fromkeys(OF_SPARK - {"url", "driver"}, "x") | {"url": POSTGRESQL},
    ],
)
def test_databases_whose_drivers_are_known_are_read(options: dict[str, Any]) -> None:
    """With options that only say how to reach and read them; values may be anything."""
    passes(jdbc(**options))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:derby:memory:x", "derby"),
        ("JDBC:Derby:memory:x", "Derby"),
        ("  jdbc:derby:x", "derby"),
        ("jdbc:h2:mem:x", "h2"),
        ("jdbc:hsqldb:mem:x", "hsqldb"),
        ("jdbc:hive2:///", "hive2"),
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
    passes(jdbc(url=url), name.upper())


@pytest.mark.parametrize(
    "wanted",
    [
        jdbc(URL="jdbc:derby:x"),
        jdbc(url=POSTGRESQL, Url="jdbc:derby:x"),
        definition(format="org.apache.spark.sql.JDBC", options={"url": "jdbc:derby:x"}),
        definition(format="com.example.Any", options={"url": "jdbc:derby:x"}),
        definition(format="com.example.Any", options={"url": "\x01 JDBC:postgresql:x"}),
        definition(format="com.example.Any", options={"url": "\u2003jdbc:derby:x"}),
        definition(format="com.example.Any", options={"url": "x", "Url": "jdbc:derby:x"}),
        definition(format="rate", sink={"format": "com.example.Any", "options": {"url": "jdbc:derby:x"}}),
    ],
)
def test_whatever_it_is_called(wanted: Definition) -> None:
    """By another name of the format, in other letters, in a sink."""
    error = refused(wanted)
    assert ".url: is of jdbc:derby" in error.cause.lower() or "does not begin" in error.cause


def test_a_url_that_is_none() -> None:
    """A driver may take what begins otherwise."""
    for url in ("derby:x", "jdbc:", "xjdbc:postgresql:x", 5):
        assert "does not begin as jdbc:postgresql: does" in refused(jdbc(url=url)).cause


@pytest.mark.parametrize("options", [{"url": POSTGRESQL}, {}])
def test_a_driver_that_is_not_known(options: dict[str, Any]) -> None:
    """Its class would be loaded, whatever it is, and take the URL as it likes."""
    error = refused(jdbc(**options, driver=DERBY))
    assert error.path == "sources.table.options.driver"
    assert f"--allow-jdbc {DERBY} on" in error.cause
    assert refused(jdbc(**options, Driver=DERBY)).path == "sources.table.options.Driver"
    passes(jdbc(**options, Driver=DERBY), DERBY)


def test_a_driver_that_is_empty() -> None:
    """There is nothing to allow."""
    assert refused(jdbc(url=POSTGRESQL, driver=" ")).cause.endswith("is empty: name the driver's class")


@pytest.mark.parametrize(("database", "driver"), [(d, each) for d in DRIVERS for each in DRIVERS[d]])
def test_a_database_brings_its_driver(database: str, driver: str) -> None:
    """Who allows the one allows the other, and no driver besides."""
    wanted = jdbc(url=f"jdbc:{database}:x", driver=driver)
    if database in {"postgresql", "sqlite"}:
        passes(wanted)
    else:
        assert refused(wanted).path == "sources.table.options.url"
        assert refused(jdbc(driver=driver)).path == "sources.table.options.driver"
        passes(wanted, database)
    assert refused(jdbc(driver=DERBY), database).path == "sources.table.options.driver"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"{POSTGRESQL}?socketFactory=a.B&socketFactoryArg=x", "socketFactory"),
        (f"{POSTGRESQL}?user=u&connectExecutor=a.B", "connectExecutor"),
        (f"{POSTGRESQL}?user=u&classLoaderStrategy", "classLoaderStrategy"),
        (f"{POSTGRESQL}?dbtable=x", "dbtable"),
        ("jdbc:sqlite:/data/x.db?enable_load_extension=true", "enable_load_extension"),
        ("jdbc:sqlite:/data/x.db?cache=private&temp_store_directory=/x", "temp_store_directory"),
        ("jdbc:mysql://h/x?autoDeserialize=true", "autoDeserialize"),
        ("jdbc:mysql://h/x?user=u;autoDeserialize", "autoDeserialize"),
        ("jdbc:mysql://h/x?user = u& autoDeserialize = true", "autoDeserialize"),
        ("jdbc:mysql://(host=h,allowLoadLocalInfile = true)/x", "allowLoadLocalInfile"),
        ("jdbc:mysql://address=(host=h)(queryInterceptors=a.B)/x", "queryInterceptors"),
        ("jdbc:mysql://x?tlsCiphersuites?a.B", "tlsCiphersuites"),
        ("jdbc:mariadb://h/x?credentialType=AWS-IAM", "credentialType"),
        ("jdbc:db2://h/x:clientRerouteServerListJNDIName=ldap://x;", "clientRerouteServerListJNDIName"),
        ("jdbc:sqlserver://h;databaseName=d;trustManagerClass={a.B}", "trustManagerClass"),
        ("jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://x'", "INIT"),
        ("jdbc:derby:x;create=true", "create"),
        ("jdbc:derby:x y\tcreate=true", "create"),
    ],
)
def test_connection_strings_that_do_more_than_connect(url: str, name: str) -> None:
    """Of each database only parameters pass that are known; a worker may allow others by their names."""
    databases = ("mysql", "mariadb", "db2", "sqlserver", "h2", "derby")
    error = refused(jdbc(url=url), *databases)
    assert error.path == "sources.table.options.url"
    assert f"has {name}, which" in error.cause
    assert f"--allow-jdbc {name} on" in error.cause
    passes(jdbc(url=url), *databases, name, "socketFactoryArg", "a.B")


def test_encoded_brackets_hide_no_parameter() -> None:
    """As MySQL's driver takes hosts; the name is told as it is without the code."""
    error = refused(jdbc(url="jdbc:mysql://address%253D(host=h)(%2571ueryInterceptors%253Da.B)/x"), "mysql")
    assert "has queryInterceptors, which is not known to be no harm: allow it" in error.cause


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (jdbc(url=f"{POSTGRESQL}?user=u&%73ocketFactory=a.B"), "has '%73ocketFactory', which is not known"),
        (jdbc(url=POSTGRESQL, **{"my option": "x"}), '["my option"]: may reach the driver of a database'),
        (in_catalog(**{"my option": "x"}), '["my option"]: is not known as an option of tables'),
        (jdbc(url=POSTGRESQL, **{"": "x"}), '[""]: may reach the driver of a database'),
        (jdbc(url=POSTGRESQL, driver="a.B c"), "driver: is not a driver that this worker knows"),
        (jdbc(url=f"{POSTGRESQL}?{'x' * 201}"), f"has '{'x' * 200}', which is not known"),
    ],
)
def test_a_name_that_no_worker_can_allow(wanted: Definition, told: str) -> None:
    """What is advised can be followed: `--allow-jdbc` takes no such name."""
    error = refused(wanted)
    assert told in error.cause
    assert "--allow-jdbc" not in error.cause
    assert error.cause.endswith("; a name that can be allowed has up to 200 letters, digits and + . _ $ -")


@pytest.mark.parametrize("url", [f"{POSTGRESQL}?user=u& =x", "jdbc:mysql://h/x?=", "jdbc:mysql:evil /=1"])
def test_a_value_without_a_name(url: str) -> None:
    """There is nothing to allow."""
    assert refused(jdbc(url=url), "mysql").cause.endswith("options.url: has a value without a name")


def test_sqlite_fetches_no_database() -> None:
    """Whatever is allowed: there is no name to allow it by."""
    error = refused(jdbc(url="jdbc:sqlite::Resource:http://host/x.db"), "sqlite", "resource")
    assert "has :resource:, by which the driver fetches files" in error.cause
    assert "has :resource:" in refused(jdbc(url="jdbc:sqlite:resource:http://host/x.db")).cause


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://h/x?useSSL=true&characterEncoding=utf8&serverTimezone=UTC&connectTimeout=5",
        "jdbc:mysql://address=(host=h)(port=1)/x?user=u&password=a=b(c,d)",
        "jdbc:mysql://h/x? user = u & password=a b",
        "jdbc:mariadb://h/x?sslMode=verify-full&socketTimeout=5",
        "jdbc:sqlserver://h;databaseName=d;encrypt=true;user=u;password=p",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=h)(PORT=1))(CONNECT_DATA=(SERVICE_NAME=x)))",
    ],
)
def test_plain_parameters_of_allowed_databases(url: str) -> None:
    """Where the database is, and who reads."""
    passes(jdbc(url=url, user="u", password="p"), "mysql", "mariadb", "sqlserver", "oracle")


@pytest.mark.parametrize("name", ["socketFactory", "LoggerFile", "connectExecutor", "autoDeserialize", "x"])
@pytest.mark.parametrize("url", [{"url": POSTGRESQL}, {"url": SQLITE}, {"url": "jdbc:mysql://h/x"}, {}])
def test_the_same_as_options(name: str, url: dict[str, str]) -> None:
    """Spark hands what it does not know itself on to the driver."""
    wanted = jdbc(**url, **{name: "x"})
    error = refused(wanted, "mysql")
    assert error.path == f"sources.table.options.{name}"
    assert f"--allow-jdbc {name} on" in error.cause
    passes(wanted, "mysql", name)


def test_options_go_with_their_database() -> None:
    """What is known of one driver is not known of another."""
    assert refused(jdbc(url=SQLITE, ApplicationName="x")).path == "sources.table.options.ApplicationName"
    assert refused(jdbc(url=POSTGRESQL, mode="x")).path == "sources.table.options.mode"
    assert refused(jdbc(mode="x")).path == "sources.table.options.mode"
    assert refused(definition(format="x.JDBC", options={"mode": "x"})).path == "sources.table.options.mode"
    passes(jdbc(User="u", connectTimeout=5))


@pytest.mark.parametrize(
    "name",
    [
        *("url", "driver", "dbtable", "query", "sessionInitStatement", "prepareQuery", "hint", "user"),
        *("createTableOptions", "enable_load_extension", "keytab", "connectionProvider"),
    ],
)
@pytest.mark.parametrize(
    "described",
    [{"table": "shop.t"}, {"format": "iceberg", "table": "shop.t"}, {"format": "x.IcebergSource"}],
)
def test_tables_keep_the_connections_of_their_catalogs(name: str, described: dict[str, str]) -> None:
    """Options would be put in place of the catalog's own, or be statements in its name."""
    value = POSTGRESQL if name == "url" else "org.postgresql.Driver"
    wanted = definition(**described, options={"path": "shop.t", name: value})
    error = refused(wanted)
    assert error.path == f"sources.table.options.{name}"
    is_spark_s = name.lower() in OF_SPARK
    assert ("would be put in place of what the table's catalog has" in error.cause) is is_spark_s
    assert ("is not known as an option of tables" in error.cause) is not is_spark_s
    passes(wanted, name)
    sink = {"table": "shop.t", "options": {name: value}}
    assert refused(definition(sink, format="rate")).path == f"sink.options.{name}"


def test_an_allowed_url_of_a_table_is_looked_at() -> None:
    """Who allows tables to lead elsewhere has not allowed to lead them anywhere."""
    assert "is of jdbc:derby" in refused(in_catalog(url="jdbc:derby:x"), "url").cause
    assert "is not a driver" in refused(in_catalog(driver=DERBY), "driver").cause


def test_how_tables_are_read_is_no_harm() -> None:
    """Options of the lakes and of files, and how much of a database is read at a time."""
    passes(in_catalog(**dict.fromkeys(NAMES, "x")))
    passes(in_catalog(maxFilesPerTrigger=1, fetchSize=10))
    prefixed = ("fs.s3a.access.key", "DFS.x", "parquet.block.size", "orc.x", "Snapshot-Property.team")
    passes(in_catalog(**dict.fromkeys(prefixed, "x")))
    passes(definition(format="iceberg", table="t", options={"snapshot-property.team": "x"}))


@pytest.mark.parametrize(
    "name", ["xfs.s3a.key", "fs", "snapshot-property", "snapshot-properties.x", "spark.x"]
)
def test_what_is_not_known_of_tables(name: str) -> None:
    """Names that only look alike; the cause says what it is about, and how to allow it."""
    error = refused(in_catalog(**{name: "x"}))
    assert error.cause.endswith(
        "is not known as an option of tables, and if the table's catalog is by JDBC, its driver is given it:"
        f" allow it with --allow-jdbc {name} on the group's workers if that is no harm"
    )
    passes(in_catalog(**{name: "x"}), name)


def test_no_option_of_tables_is_of_a_connection() -> None:
    """Whatever becomes known of lakes and files: how Spark reaches a database is its catalog's."""
    assert NAMES & OF_SPARK == READING


@pytest.mark.parametrize("described", [{"table": "lake.shop.t"}, {}])
def test_iceberg_takes_settings_of_hadoop_s_elsewhere(described: dict[str, str]) -> None:
    """In options they would be nothing, without a word."""
    options = {"path": "s3a://shop/t", "FS.s3a.access.key": "x"}
    error = refused(definition(format="iceberg", **described, options=options))
    assert error.cause == (
        'sources.table.options["FS.s3a.access.key"]: is a setting of Hadoop\'s,'
        " which Iceberg takes from spark_conf and not from options"
    )


@pytest.mark.parametrize(
    "wanted",
    [
        definition(format="org.neo4j.spark.DataSource", options={"driver": "bolt", "url": "neo4j://h"}),
        definition(format="csv", options={"logger": "x", "prepareQuery": "x"}),
        definition({"format": "sql", "options": {"url": "sqlite:///x", "table": "t"}}, format="csv"),
    ],
)
def test_other_sources_are_not_concerned(wanted: Definition) -> None:
    """Though their options be called the same."""
    passes(wanted)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ({"url": "jdbc:mysql://h/x?password=${env:P}"}, {"url": "jdbc:mysql://h/x?password=abc&S3cret=x"}),
        ({"url": "${env:P}"}, {"url": "jdbc:S3cret:x"}),
        ({"url": "${env:P}"}, {"url": "S3cret"}),
        ({"driver": "${env:P}"}, {"driver": "S3cret"}),
    ],
)
def test_nothing_of_a_secret_is_told(written: dict[str, str], value: dict[str, str]) -> None:
    """A name is told only if it stands in the definition as it was given."""
    error = refused(jdbc(**value), "mysql", written=jdbc(**written))
    assert "s3cret" not in error.cause.lower()
    assert error.path == f"sources.table.options.{next(iter(value))}"


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("jdbc:mysql://h/x?password={}", "a&pass=x"),
        ("jdbc:mysql://h/x?password={}", "a&h=x"),
        ("jdbc:mysql://h;password={}", "a;env=x"),
        ("jdbc:{}:memory:derby", "derby"),
        ("jdbc:postgresql:x?user={}", "a&${env:P}=x"),
    ],
)
def test_a_part_of_a_secret_that_stands_elsewhere_is_not_told(url: str, secret: str) -> None:
    """Only a name that the definition has as a name: what else is alike may be chance."""
    error = refused(jdbc(url=url.format(secret)), "mysql", written=jdbc(url=url.format("${env:P}")))
    assert "--allow-jdbc NAME on" in error.cause
    assert secret not in error.cause
    assert "NAME is not shown: it comes out of a reference" in error.cause


def test_a_name_that_is_written_is_told_beside_a_secret() -> None:
    """It is no part of the secret."""
    url = "jdbc:mysql://h/x?password={}&autoDeserialize=true"
    error = refused(jdbc(url=url.format("abc")), "mysql", written=jdbc(url=url.format("${env:P}")))
    assert "--allow-jdbc autoDeserialize on" in error.cause


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


def test_nor_to_the_database_of_a_catalog() -> None:
    """Though the worker allow it to tasks."""
    reading, left_out = for_check(in_catalog(fetchsize=1, **dict.fromkeys(STATEMENTS, "DELETE FROM t")))
    assert sorted(left_out) == sorted(f"sources.table.options.{name}" for name in STATEMENTS)
    assert reading.sources["table"].options == {"fetchsize": 1}


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"Url": SQLITE, "open_mode": 1, "OPEN_MODE": 6}, {"Url": SQLITE, "open_mode": "1"}),
        (
            {"url": POSTGRESQL, "readOnly": True, "READONLY": False, "readonlymode": "ignore"},
            {"url": POSTGRESQL, "readOnly": "true", "readOnlyMode": "always"},
        ),
        ({"url": "jdbc:mysql://h/x"}, {"url": "jdbc:mysql://h/x"}),
        ({"URL": SQLITE, "url": POSTGRESQL}, None),
    ],
)
def test_no_option_undoes_that(options: dict[str, Any], asked: dict[str, Any] | None) -> None:
    """The letters that it is written in do not matter to Spark, and the last one counts."""
    read = for_check(jdbc(**options))[0].sources["table"].options
    if asked is None:
        assert (read["open_mode"], read["readOnly"]) == ("1", "true")
    else:
        assert read == {"dbtable": "t", **asked}


def test_a_check_leaves_other_sources_as_they_are() -> None:
    """Though their options be called the same."""
    wanted = parse_definition(
        b'{"source": {"format": "x", "options": {"prepareQuery": "y"}}, "sink": {"format": "noop"}}'
    )
    assert for_check(wanted) == (wanted, [])


SETTINGS = SparkSettings(app_name="t", checkpoint_root="nowhere", allow_secret_env=("TESTED_",))


def ignore(_: str) -> None:
    """A step."""


def test_a_task_is_refused_before_spark_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its references resolved, and with none of what they stand for in the cause."""
    monkeypatch.setenv("TESTED_URL", "jdbc:derby:x")
    spec = QuerySpec("g", "t", 1, jdbc(url="${env:TESTED_URL}"))
    with pytest.raises(QueryError, match=r"^sources.table.options.url: is of jdbc:NAME, whose driver"):
        launch(FakeBackend(), spec, SETTINGS, lambda: True, StartSteps(ignore))


def test_a_check_is_refused_before_spark_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise."""
    monkeypatch.setenv("TESTED_URL", "jdbc:derby:x")
    spec = CheckSpec("g", jdbc(url="${env:TESTED_URL}"), 1, "beginning")
    [problem] = check(FakeBackend(), spec, SETTINGS, Cancellation(ignore)).problems
    assert problem.path == "sources.table.options.url"
    assert problem.message.startswith("is of jdbc:NAME, whose driver")
