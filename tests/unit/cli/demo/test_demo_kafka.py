"""The demo's topic: its records, its tasks, and the jars that it asks for."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cli.demo.data import flights
from cli.demo.flight_topic import KafkaJars
from cli.demo.kafka_broker import BrokerError, KafkaBroker, new_nodes
from cli.demo.kafka_tasks import PARTITIONS, kafka_tasks, record
from cli.demo.plan import DELAYS, FLIGHTS
from cli.demo.sql_sink import SqlSink
from cli.demo.truth import FLIGHT_COLUMNS, truth
from definition.document import parse_definition
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque

if TYPE_CHECKING:
    from pathlib import Path

FEW = 3000


def test_records_have_all_that_is_compared() -> None:
    """Read as JSON, they are the flights that the truth has; each has its flight's number as key."""
    records = list(map(record, flights(FEW)))
    values = [json.loads(value) for _, value in records]
    assert Counter(tuple(value[name] for name in FLIGHT_COLUMNS) for value in values) == truth(FEW).flights
    assert all(
        key == f"{value['carrier']}{value['flight']}".encode()
        for (key, _), value in zip(records, values, strict=True)
    )
    assert not any(mark in line for pair in records for line in pair for mark in (b"\t", b"\n"))


def test_tasks_read_each_partition_once(tmp_path: Path) -> None:
    """Each is a definition; partitions are dealt out to the tasks of flights, and delays are of all."""
    plan = kafka_tasks(SqlSink(tmp_path), "127.0.0.1:9092", FEW)
    assert plan.rows == 2 * FEW
    for task in plan.tasks:
        parse_definition(encode_opaque(task.definition))
    assigned = [
        partition
        for task in plan.tasks
        if task.table == FLIGHTS
        for partition in json.loads(task.definition["source"]["options"]["assign"])["flights"]
    ]
    assert assigned == list(range(PARTITIONS))
    assert [task.rows for task in plan.tasks if task.table == DELAYS] == [FEW]


def jars(folder: Path, *names: str) -> str:
    """A folder with those files in it."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(folder)


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((), "no Kafka broker in"),
        (("spark/kafka/spark-sql-kafka-0-10_2.13-4.1.1.jar",), "no Kafka broker in"),
        (("kafka/kafka_2.13-4.3.1.jar",), "no Kafka connector of Spark in"),
    ],
)
def test_missing_jars(tmp_path: Path, there: tuple[str, ...], missing: str) -> None:
    """What is not there is named, with the option and how to get it."""
    with pytest.raises(StartupError, match=missing) as caught:
        KafkaJars(jars(tmp_path, *there))
    assert str(caught.value).startswith(f"--kafka {tmp_path}: ")
    assert "`make jars`" in str(caught.value)


def test_workers_get_the_connector_alone(tmp_path: Path) -> None:
    """Not the broker's jars, which have another client of Kafka's."""
    found = KafkaJars(
        jars(tmp_path, "kafka/kafka_2.13-4.3.1.jar", "spark/kafka/spark-sql-kafka-0-10_2.13-4.1.1.jar")
    )
    assert found.worker_flags[:2] == ("--jars", str(tmp_path / "spark" / "kafka"))


def test_a_broker_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is one line, before anything of it is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    broker = KafkaBroker(tmp_path / "jars", tmp_path / "broker")
    with pytest.raises(BrokerError, match=r"needs Java, and .*/nowhere/bin/java does not run"):
        broker.start()
    assert not broker.alive


def test_nodes_of_a_cluster_share_no_port() -> None:
    """Each has an id and two ports of its own."""
    nodes = new_nodes(3)
    assert [node.number for node in nodes] == [1, 2, 3]
    assert len({port for node in nodes for port in (node.port, node.controller_port)}) == 6
