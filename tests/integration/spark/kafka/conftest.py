"""One real broker for the tests of this folder; each test has topics of its own."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic

_numbers = itertools.count()
USER, PASSWORD = "anna", "r1ght-Passphrase-Zx9"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SASL = {
    "protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "plain.sasl.jaas.config": f'{_LOGIN} required user_{USER}="{PASSWORD}";',
}
"""A listener that lets nobody in without that password."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka.running(tmp_path_factory.mktemp("kafka"), listeners={"SASL": SASL}) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> Topic:
    """An empty one of three partitions."""
    return broker.topic(f"t{next(_numbers)}", partitions=3)


def orders(count: int, first: int = 0) -> list[bytes]:
    """JSON as a producer would write it."""
    return [json.dumps(order(number)).encode() for number in range(first, first + count)]


def order(number: int) -> dict[str, Any]:
    return {"id": number, "customer": f"c{number % 3}", "total": number / 2}
