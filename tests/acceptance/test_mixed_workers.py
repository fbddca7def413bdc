"""A group whose workers have different packages: a task runs where it can, or says what is missing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import __version__ as spark_version

from protocol.states import TaskState
from tests.acceptance.group_view import GroupView, ticking
from tests.acceptance.waiting import eventually
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.processes import Herd
    from tests.kafka.topic import Topic

pytestmark = [
    pytest.mark.connectors,
    pytest.mark.spark,
    pytest.mark.processes,
    pytest.mark.timeout(1200),
]

WITH_KAFKA = ("--jars", str(kafka.JARS.parent / "spark" / "kafka"))
TICKING = ("t1", "t2")
MISSING = (
    "no worker has the source `kafka`; start one with"
    f" --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"
)


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Topic]:
    """Of two partitions, at a broker of its own."""
    with kafka.running(tmp_path / "kafka") as broker:
        yield broker.topic("orders", partitions=2)


class Orders:
    """The rows of the task that reads Kafka, and those that are in its sink."""

    def __init__(self, herd: Herd, topic: Topic) -> None:
        self._herd = herd
        self._topic = topic
        self._sent = 0

    def definition(self) -> dict[str, Any]:
        """A number a row."""
        url = f"sqlite:///{self._herd.folder / 'orders.db'}"
        return {
            "source": self._topic.source(value={"format": "text"}),
            "sql": "SELECT CAST(value AS BIGINT) AS id FROM source",
            "sink": {"format": "sql", "options": {"url": url, "table": "orders"}},
            "trigger": {"processing_time": "500 milliseconds"},
        }

    def add(self, rows: int = 30) -> None:
        """More of them, in both partitions."""
        for partition in range(2):
            numbers = range(self._sent + partition, self._sent + rows, 2)
            self._topic.produce([str(number).encode() for number in numbers], partition=partition)
        self._sent += rows

    def are_there(self) -> bool:
        """Each once, and no other."""
        with closing(sqlite3.connect(self._herd.folder / "orders.db")) as database:
            found = [row[0] for row in database.execute("SELECT id FROM orders ORDER BY id")]
        assert len(found) == len(set(found)), "rows are there twice"
        return found == list(range(self._sent))


def test_a_task_runs_where_its_source_can_be_read_or_says_what_is_missing(herd: Herd, topic: Topic) -> None:
    """Through the death of the only worker that has Kafka, and the start of another that has it."""
    orders, group = Orders(herd, topic), GroupView(herd)
    orders.add()
    group.create("orders", orders.definition())
    for name in TICKING:
        group.create(name, ticking(herd.folder, name))
    herd.start_worker("anna", *WITH_KAFKA)
    herd.start_worker("berta")
    eventually(lambda: group.settled(2), "all tasks run", alive=herd.daemons)
    before, ids = group.tasks(), group.workers()
    assert before["orders"].owner == ids["anna"]
    assert ids["berta"] in {before[name].owner for name in TICKING}
    eventually(lambda: _behind(group) == 0, "anna has told the lag", alive=herd.daemons)

    herd.workers.pop("anna").kill()
    orders.add()
    eventually(lambda: group.tasks()["orders"].cause == MISSING, "it says why", alive=herd.daemons)
    eventually(lambda: _owners(group) == {ids["berta"]}, "berta has the others", alive=herd.daemons)
    waiting = group.tasks()["orders"]
    assert (waiting.state, waiting.owner) == (TaskState.UNASSIGNED.value, None)
    assert _behind(group) == 0, "30 are, but nobody here can ask the broker: what was told last stays"

    herd.start_worker("carla", *WITH_KAFKA)
    first = before["orders"]

    def has_gone_on() -> bool:
        """From the checkpoint: the batches are counted on."""
        return (group.tasks()["orders"].batch_id or 0) > (first.batch_id or 0) and orders.are_there()

    eventually(lambda: group.settled(2) and has_gone_on(), "carla goes on", alive=herd.daemons)
    after = group.tasks()["orders"]
    assert after.owner == group.workers()["carla"]
    assert after.token > first.token


def _behind(group: GroupView) -> int | None:
    lag = group.tasks()["orders"].lag
    return None if lag is None else lag.rows


def _owners(group: GroupView) -> set[str | None]:
    tasks = group.tasks()
    return {tasks[name].owner for name in TICKING}
