"""One Spark Connect server for the tests of this folder, and a worker's engine on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable  # noqa: TC003 - the plugin asks for fixtures' types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests import connect_server
from tests.contracts.query_engine import made_ready
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.connect_server import ConnectServer
    from tests.integration.spark.conftest import Database, Flights, Lease, Start
    from worker.query_engine import QuerySpec
    from worker.spark.query import SparkQuery

HERE = Path(__file__).parent
MODE = "SPARK_CONNECT_MODE_ENABLED"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Its Python finds the modules of this folder."""
    with connect_server.running(tmp_path_factory.mktemp("server"), HERE) as server:
        yield server


@pytest.fixture(scope="session")
def settings(server: ConnectServer, tmp_path_factory: pytest.TempPathFactory) -> SparkSettings:
    return SparkSettings(
        app_name="tests",
        checkpoint_root=str(tmp_path_factory.mktemp("connect-checkpoints")),
        remote=server.url,
        allow_entrypoint=("tested_on_server",),
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def opened(settings: SparkSettings, lease: Lease, engine: SparkEngine) -> AsyncIterator[SparkEngine]:
    """The worker's engine on the server; that of the JVM comes first, while PySpark still lets it."""
    del engine
    remote = SparkEngine(settings, lease)
    await remote.open()
    del os.environ[MODE]  # tests of the JVM may follow
    yield remote
    os.environ[MODE] = "1"
    await remote.close()


@pytest.fixture
def remote(opened: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> SparkEngine:
    """That engine, in the only kind of Spark there is as long as the test lasts."""
    monkeypatch.setenv(MODE, "1")
    monkeypatch.syspath_prepend(HERE)
    return opened


@pytest_asyncio.fixture(loop_scope="session")
async def start(remote: SparkEngine, lease: Lease, spec: Callable[..., QuerySpec]) -> AsyncIterator[Start]:
    """Starts a query on the server; the test's end stops it."""
    started = []

    async def run(
        task: str = "t", token: int = 1, *, is_prepared: bool = False, **definition: Any
    ) -> SparkQuery:
        wanted = spec(task, token, **definition)
        prepared = await made_ready(remote, wanted) if is_prepared else None
        query = await remote.start(wanted, prepared=prepared)
        started.append(query)
        return query

    yield run
    lease.holds = True
    await asyncio.gather(*(query.stop(0) for query in started))


class ServerStage:
    """A point in a batch on the server: the test waits until it is reached, and lets it go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("reached", "go_on"):
            os.mkfifo(folder / name)

    async def until_reached(self) -> None:
        assert await asyncio.to_thread((self.folder / "reached").read_text) == "here"

    async def go_on(self) -> None:
        await asyncio.to_thread((self.folder / "go_on").write_text, "go on")


class Guarded:
    """The definition of a query that guards a table of its own, and is held in a batch."""

    def __init__(self, flights: Flights, database: Database, stage: ServerStage) -> None:
        self.stage = stage
        self._options = {
            "path": str(flights.folder),
            "url": f"sqlite:///{database.path}",
            "stage": str(stage.folder),
        }

    def held(self, batch_id: int, **options: Any) -> dict[str, Any]:
        """One batch of the first owner waits inside."""
        return self.definition(hold=batch_id, **options)

    def definition(self, **options: Any) -> dict[str, Any]:
        """All batches run through."""
        return {"entrypoint": "tested_on_server:guarded", "options": {**self._options, **options}}


@pytest.fixture
def guarded(flights: Flights, database: Database, tmp_path: Path) -> Guarded:
    folder = tmp_path / "stage"
    folder.mkdir()
    return Guarded(flights, database, ServerStage(folder))
