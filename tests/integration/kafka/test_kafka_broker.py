"""A broker as a process: what it has had, and what it says when it cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.demo.kafka_broker import BrokerError, KafkaBroker
from cli.demo.kafka_metadata import live_brokers
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.connectors


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    with kafka.running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def test_a_broker_goes_on_with_what_it_had(broker: kafka.Broker) -> None:
    """Killed, or stopped in order: started again, it is asked at the same port, and has its rows."""
    topic = broker.topic("rows", partitions=2)
    for end in (broker.kill, broker.stop):
        topic.produce([b"row"], partition=1)
        end()
        assert not broker.alive
        broker.start()
    assert topic.ends() == {0: (0, 0), 1: (0, 2)}


def test_a_frozen_broker_says_nothing(broker: kafka.Broker) -> None:
    """It is there and does not answer, until it is thawed."""
    broker.freeze()
    with pytest.raises(TimeoutError):
        live_brokers("127.0.0.1", broker.port, 0.5)
    assert broker.alive
    broker.thaw()
    live_brokers("127.0.0.1", broker.port, 60)


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    """A setting that it does not take, in its own words."""
    broker = KafkaBroker(kafka.JARS, tmp_path, settings={"num.io.threads": "none"})
    with pytest.raises(BrokerError, match=r"num\.io\.threads"):
        broker.start()


def test_tools_say_why(broker: kafka.Broker) -> None:
    """One that fails is an error with what it printed."""
    with pytest.raises(BrokerError, match="nowhere"):
        broker.tool("kafka-topics", "--describe", "--topic", "nowhere")
