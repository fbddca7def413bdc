"""Lag by a checkpoint and by what brokers say, without Kafka and without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import parse_definition
from tests.fakes.spark_backend import FakeBackend
from worker.lag.measure import PartitionState
from worker.query_engine import QueryError, QuerySpec
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.kafka.lag import measure
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.lag.group_offsets import Mark, Outcome

SETTINGS = SparkSettings(app_name="tests", checkpoint_root="/shared")
ORDERS: dict[str, Any] = {"format": "kafka", "options": {"subscribe": "orders", "kafka.x": "${env:SECRET}"}}


class Folder(CheckpointFolder):
    """A checkpoint whose last finished batch ended there."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__("folder")
        self.files = files

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def last(self, log: str) -> int | None:
        numbers = [int(name.partition("/")[2]) for name in self.files if name.startswith(f"{log}/")]
        return max(numbers, default=None)

    def create(self, name: str, text: str) -> None:
        raise AssertionError(f"{name} is written here: {text}")


class Topics:
    """Brokers with one topic of one partition."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.trouble: Exception | None = None

    def states(
        self, options: Any, committed: Any, purpose: Any = None
    ) -> dict[str, dict[int, PartitionState]]:
        del purpose
        self.asked.append((options, committed))
        if self.trouble is not None:
            raise self.trouble
        return {"orders": {0: PartitionState(0, 10)}}

    def commit(self, options: Any, consumer_group: str, offsets: Any, mark: Mark) -> Outcome:
        raise AssertionError(f"{consumer_group} is told {offsets} of {options} by {mark}")

    def watch(self, options: Any) -> Any:
        raise AssertionError(f"a query of {options} is watched")

    def requests(self) -> dict[tuple[str, bool], int]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


def spec(**fields: Any) -> QuerySpec:
    """A task with this definition."""
    document = {"sink": {"format": "noop"}, **fields}
    return QuerySpec("g", "t", 1, parse_definition(json.dumps(document).encode()))


def backend(**files: str) -> FakeBackend:
    """With brokers, and this in the task's checkpoint."""
    made = FakeBackend()
    made.brokers = Topics()
    made.checkpoints["/shared/g/t"] = Folder({name.replace("_", "/"): text for name, text in files.items()})
    return made


ENTRY = 'v1\n{}\n{"orders":{"0":4}}'


def test_the_last_finished_batch_counts_and_not_the_one_that_is_planned(monkeypatch: Any) -> None:
    """Rows of a batch that is being done are still to be written."""
    monkeypatch.setenv("SECRET", "what nobody else says")
    settings = SparkSettings(app_name="t", checkpoint_root="/shared", allow_secret_env=("SECRET",))
    spark = backend(offsets_3=ENTRY, commits_3="v1\n{}", offsets_4='v1\n{}\n{"orders":{"0":9}}')
    lag = measure(spark, spec(source=ORDERS), settings)
    assert lag is not None
    assert (lag.rows, lag.trouble) == (6, None)
    [(options, committed)] = spark.brokers.asked  # type: ignore[union-attr]
    assert (options["kafka.x"], committed) == ("what nobody else says", {"orders": {0: 4}})


def test_a_new_task_has_an_end_and_no_lag() -> None:
    """Where it will begin nobody knows but Spark."""
    plain = {"format": "kafka", "options": {"subscribe": "orders"}}
    lag = measure(backend(), spec(source=plain), SETTINGS)
    assert lag is not None
    assert (lag.rows, lag.partitions[0].end) == (None, 10)


def test_only_streams_of_kafka_are_measured() -> None:
    """A static source has no progress, other formats nobody to ask, an entry point says nothing."""
    still = {"format": "kafka", "options": {"subscribe": "orders"}, "static": True}
    rate = {"format": "rate"}
    for fields in ({"source": rate}, {"sources": {"a": rate, "b": still}, "sql": "SELECT 1"}):
        assert measure(backend(), spec(**fields), SETTINGS) is None
    entry = QuerySpec("g", "t", 1, parse_definition(b'{"entrypoint": "a:b"}'))
    assert measure(backend(), entry, SETTINGS) is None


def test_without_a_client_of_kafka_nothing_is_told() -> None:
    """As behind a Spark Connect server."""
    assert measure(FakeBackend(), spec(source=ORDERS), SETTINGS) is None


def test_why_it_is_not_known_is_told_in_one_line_without_secrets() -> None:
    """A broker that is away, a secret that is not there."""
    lag = measure(backend(offsets_3=ENTRY, commits_3="v1\n{}"), spec(source=ORDERS), SETTINGS)
    assert lag is not None
    assert (lag.trouble or "").startswith("source.options")
    spark = backend()
    spark.brokers.trouble = QueryError("no broker answers\nat java.lang")  # type: ignore[union-attr]
    plain = {"format": "kafka", "options": {"subscribe": "orders"}}
    lag = measure(spark, spec(source=plain), SETTINGS)
    assert lag is not None
    assert lag.trouble == "no broker answers"


@pytest.mark.parametrize("error", [ValueError("no such listener"), ConnectionError("the JVM is gone")])
def test_an_unforeseen_error_is_the_reason_unless_spark_is_gone(error: Exception) -> None:
    """Of a Spark that is gone nothing can be said; the backend knows the errors of such a one."""
    spark = backend()
    spark.brokers.trouble = error  # type: ignore[union-attr]
    plain = {"format": "kafka", "options": {"subscribe": "orders"}}
    if spark.is_loss(error):
        with pytest.raises(ConnectionError):
            measure(spark, spec(source=plain), SETTINGS)
        return
    lag = measure(spark, spec(source=plain), SETTINGS)
    assert lag is not None
    assert lag.trouble == "ValueError: no such listener"
