"""One JVM for nearly all tests: a real engine, real files, a real SQLite database."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import os
import sqlite3
import sys
import threading
import types
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from py4j.clientserver import ClientServerConnection

from definition.document import parse_definition
from tests.contracts.query_engine import made_ready
from worker.query_engine import QueryError, QuerySpec
from worker.spark.classic import jvm as jvm_module
from worker.spark.classic.backend import ClassicBackend
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from tests.integration.postgres import Server
    from worker.spark.query import SparkQuery

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 120
SCHEMA = "id LONG, carrier STRING, delay DOUBLE"
QUICK = {
    # a JVM that lives for a minute never earns its best code back
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    # as few as a worker of a day has of the last minutes: what is asked of Spark's store may be gone
    "spark.ui.retainedStages": "40",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A commit to a lake is many small queries, whose code took a quarter of the time; other runs generate it."""
CONNECTORS = ROOT / "jars" / "spark"
"""Of `make jars`."""
OF_CONNECTORS = {Path(__file__).parent / "kafka", Path(__file__).parent / "connectors"}
"""The folders whose tests need them."""
OF_PROCESSES = Path(__file__).with_name("isolation")
"""Each test there starts JVMs of its own."""
_numbers = itertools.count()

Start = Callable[..., Awaitable["SparkQuery"]]


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Every test here needs the JVM, and shares the event loop that the engine lives in."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if not OF_CONNECTORS.isdisjoint(item.path.parents):
                item.add_marker(pytest.mark.connectors)
            if OF_PROCESSES in item.path.parents:
                item.add_marker(pytest.mark.processes)
            if isinstance(item, pytest.Function) and asyncio.iscoroutinefunction(item.function):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def are_needed(request: pytest.FixtureRequest) -> bool:
    """Whether any test of this run is about connectors: all others are to pass without them."""
    return any(item.get_closest_marker("connectors") for item in request.session.items)


def lakes(folder: str) -> dict[str, str]:
    """Spark's settings for Iceberg and for Delta in S3, as the docs have them; Delta needs none else."""
    return {
        "spark.delta.logStore.s3a.impl": "sparkherd.delta.PutLogStore",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/lake.db",
        "spark.sql.catalog.lake.warehouse": f"{folder}/lake",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }


class Lease:
    """The worker's lease on itself, in the hands of a test."""

    holds = True

    def __call__(self) -> bool:
        return self.holds


class Flights:
    """A folder of small JSON files, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: list[int] = []
        folder.mkdir()

    def add(self, files: int = 1, rows: int = 10) -> None:
        """Put more files there, in order; each appears whole."""
        for _ in range(files):
            ids = range(len(self.ids), len(self.ids) + rows)
            lines = [{"id": n, "carrier": ("UA", "AA", "B6")[n % 3], "delay": n / 2} for n in ids]
            hidden = self.folder / ".new"
            hidden.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self._age(hidden)
            hidden.rename(self.folder / f"{len(self.ids):06}.json")
            self.ids += ids

    def _age(self, file: Path) -> None:
        """Spark takes files by the time they were changed; a millisecond is enough for several of them."""
        at = 1_400_000_000 + len(self.ids)
        os.utime(file, (at, at))

    @property
    def source(self) -> dict[str, Any]:
        """One file a batch."""
        options = {"path": str(self.folder), "maxFilesPerTrigger": 1}
        return {"format": "json", "schema": SCHEMA, "options": options}


class Database:
    """The SQLite file that sinks write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sink(self, table: str = "flights", **options: Any) -> dict[str, Any]:
        """A definition's sink into one of its tables."""
        return {"format": "sql", "options": {"url": f"sqlite:///{self.path}", "table": table, **options}}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()

    def ids(self) -> list[int]:
        """All ids in the table `flights`, twice what is there twice."""
        return [row[0] for row in self.query("SELECT id FROM flights ORDER BY id")]


@pytest.fixture(scope="session", autouse=True)
def _no_question_to_the_jvm_in_the_event_loop() -> Iterator[None]:
    """A hung JVM does not answer, and must not take the worker's heartbeats with it."""
    ask = ClientServerConnection.send_command

    def guarded(self: Any, command: str) -> Any:
        if asyncio._get_running_loop() is not None and (asker := _asker()):
            raise AssertionError(f"the JVM is asked in the event loop: {asker}")
        return ask(self, command)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ClientServerConnection, "send_command", guarded)
        yield


def _asker() -> str:
    """The place in the worker that a call into Py4J comes from, unless a test has just called that itself."""
    asker = ""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if ROOT / "tests" in path.parents:
            return ""
        if ROOT / "worker" in path.parents:
            asker = asker or f"{path.relative_to(ROOT)}:{frame.f_lineno}"
            if frame.f_code.co_flags & inspect.CO_COROUTINE:
                return asker
        frame = frame.f_back
    return asker


@pytest.fixture(scope="session")
def lease() -> Lease:
    return Lease()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine(
    lease: Lease,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    secrets_folder: Path,
) -> AsyncIterator[SparkEngine]:
    """The one engine; its entry points are those of the module `tested`."""
    root = str(tmp_path_factory.mktemp("checkpoints"))
    with_connectors = are_needed(request)
    settings = SparkSettings(
        app_name="tests",
        checkpoint_root=root,
        master="local[2,2]",  # a failed attempt at a partition is followed by another
        conf={**QUICK, **({**INTERPRETED, **lakes(root)} if with_connectors else {})},
        allow_entrypoint=("tested", "absent"),
        allow_secret_env=("TESTED_",),
        secrets_dir=str(secrets_folder),
        jars=(str(CONNECTORS),) if with_connectors else (),
    )
    engine = SparkEngine(settings, lease)
    await engine.open()
    yield engine
    await engine.close()


@pytest.fixture(scope="session")
def secrets_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine's --secrets-dir."""
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="session")
def spark(engine: SparkEngine) -> SparkSession:
    """The session of that engine."""
    assert isinstance(engine._backend, ClassicBackend)
    return engine._backend.spark


@pytest.fixture
def flights(tmp_path: Path) -> Flights:
    return Flights(tmp_path / "in")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "out.db")


@pytest.fixture(scope="session")
def postgres(postgres: Server) -> str:
    """The URL of a real PostgreSQL."""
    return postgres.url


@pytest.fixture
def spec() -> Callable[..., QuerySpec]:
    """Specs of a group that no other test has, so neither its checkpoints."""
    group = f"g{next(_numbers)}"

    def make(task: str, token: int, **definition: Any) -> QuerySpec:
        return QuerySpec(group, task, token, parse_definition(json.dumps(definition).encode()))

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def start(engine: SparkEngine, lease: Lease, spec: Callable[..., QuerySpec]) -> AsyncIterator[Start]:
    """Starts a query; the test's end stops it."""
    started = []

    async def run(
        task: str = "t", token: int = 1, *, is_prepared: bool = False, **definition: Any
    ) -> SparkQuery:
        wanted = spec(task, token, **definition)
        prepared = await made_ready(engine, wanted) if is_prepared else None
        query = await engine.start(wanted, prepared=prepared)
        started.append(query)
        return query

    yield run
    lease.holds = True
    await asyncio.gather(*(query.stop(0) for query in started))


@pytest.fixture
def entrypoint(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], str]:
    """Makes a function of the test an entry point that the engine allows."""

    def publish(function: Callable[..., Any]) -> str:
        module = types.ModuleType("tested")
        module.run = function  # type: ignore[attr-defined]  # what a module is made of
        monkeypatch.setitem(sys.modules, "tested", module)
        return "tested:run"

    return publish


class Stage:
    """A named point in a batch: the test waits until it is reached, and lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def pause(self) -> None:
        """Called by what runs in the batch."""
        self.reached.set()
        assert self.go_on.wait(TIMEOUT_S)

    async def until_reached(self) -> None:
        """Called by the test."""
        assert await asyncio.to_thread(self.reached.wait, TIMEOUT_S)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.go_on.set()


class JvmLog:
    """What the JVM has said since the test began."""

    def __init__(self, spark: SparkSession) -> None:
        self.lines: list[str] = []
        self._spark = spark
        self._arrived = threading.Event()

    def tell(self, line: str) -> None:
        self.lines.append(line)
        if "end of test" in line:
            self._arrived.set()

    def all(self) -> str:
        """Everything up to now: a line of our own at its end says that nothing is on its way."""
        logs: Any = self._spark._jvm
        logs.org.apache.logging.log4j.LogManager.getLogger("test").warn("end of test")
        assert self._arrived.wait(TIMEOUT_S)
        return "\n".join(self.lines[:-1])


@pytest.fixture
def jvm_log(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> JvmLog:
    log = JvmLog(spark)
    monkeypatch.setattr(jvm_module, "_tell", log.tell)
    return log


async def catch_up(query: SparkQuery) -> None:
    """Wait until the query has done all there is, and has seen that it has."""
    await asyncio.to_thread(query._handle.query.processAllAvailable)
    await asyncio.to_thread(query.poll)


async def refusal(start: Any, *, permanent: bool | None = None, **definition: Any) -> str:
    """The first line of the cause why a start fails; what follows it is more than that line."""
    with pytest.raises(QueryError) as refused:
        await start(**definition)
    assert not refused.value.fenced
    assert permanent in {None, refused.value.permanent}
    return str(refused.value).partition("\n")[0]


@pytest.fixture(name="catch_up")
def _catch_up() -> Callable[[SparkQuery], Awaitable[None]]:
    return catch_up


@pytest.fixture(params=["collected", "staged"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a batch comes to the driver in one piece, or is staged by executors."""
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
