"""The fenced Iceberg sink with a REST catalog, a real one: zombies, lost answers, and the contract."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.held_line import TIMEOUT_S
from tests.iceberg_rest import server as rest
from tests.integration.spark.connectors.lake_sinks import Table, Writer
from tests.integration.spark.connectors.test_iceberg_contract import TestIceberg as IcebergContract
from worker.sinks.errors import FencedError, SinkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

MODES: list[dict[str, Any]] = [{}, {"mode": "overwrite"}, {"mode": "upsert", "key": ["id"]}]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a catalog with tables on a local disk."""
    with rest.running(tmp_path_factory.mktemp("rest")) as port:
        yield port


@pytest.fixture
def line(port: int) -> Iterator[rest.RestLine]:
    """One owner's connections to it."""
    with rest.RestLine(port) as line:
        yield line


@pytest.fixture
def direct(port: int, spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose connections nobody holds."""
    with rest.RestLine(port) as free:
        session = _at(spark, free)
        session.sql("CREATE NAMESPACE IF NOT EXISTS rest.shop")
        yield session


def _at(spark: SparkSession, line: rest.RestLine) -> SparkSession:
    session = spark.newSession()
    for key, value in line.catalog("rest").items():
        session.conf.set(key, value)
    return session


def _left(options: dict[str, Any], *batches: int) -> list[int]:
    """What is in the table after these batches."""
    kept = batches[-1:] if options.get("mode") == "overwrite" else batches
    return sorted(batch * 10 + at for batch in kept for at in range(10))


@pytest.mark.parametrize("options", MODES)
def test_a_zombie_inside_its_commit_is_refused_by_the_server(
    spark: SparkSession, direct: SparkSession, line: rest.RestLine, options: dict[str, Any]
) -> None:
    """Held on its way to the server until the next owner has written that batch and one more."""
    table, slow = Table(direct, "rest"), Table(_at(spark, line), "rest")
    slow.path, slow.name = table.path, table.name
    zombie, follower = Writer(slow, **options), Writer(table, token=2, **options)
    zombie.begin()
    zombie.batch(0)
    line.hold(rest.COMMIT)
    refused: list[BaseException] = []

    def write() -> None:
        try:
            zombie.batch(1)
        except SinkError as error:
            refused.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert line.reached.wait(TIMEOUT_S)
    assert follower.begin() == 0
    follower.batch(1)
    follower.batch(2)
    line.go_on.set()
    thread.join(TIMEOUT_S)
    assert isinstance(refused[0], FencedError)
    assert table.ids == _left(options, 0, 1, 2)


@pytest.mark.parametrize("options", MODES)
def test_a_commit_whose_answer_is_lost_is_there_once(
    spark: SparkSession, direct: SparkSession, line: rest.RestLine, options: dict[str, Any]
) -> None:
    """The server has done it, and the connection breaks before it says so."""
    there = Table(direct, "rest")
    table = Table(_at(spark, line), "rest")
    there.path, there.name = table.path, table.name
    writer = Writer(table, **options)
    writer.begin()
    writer.batch(0)
    line.loses = True
    written = writer.batch(1)
    assert not line.loses
    assert (written.rows, written.duplicate) == (10, False)
    assert writer.batch(2).rows == 10
    assert there.ids == _left(options, 0, 1, 2)


class TestIcebergOverRest(IcebergContract):
    """The same promises of the same tables, which a server commits."""

    catalog = "rest"
    steps = 3

    @pytest.fixture(autouse=True)
    def _namespace(self, direct: SparkSession) -> None:
        self.begin(direct)


del IcebergContract  # or it would be collected here, too
