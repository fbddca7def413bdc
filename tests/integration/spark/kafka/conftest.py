"""One real broker for the tests of this folder; each test has topics of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic

TIMEOUT_S = 60
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


async def until(holds: Callable[[], bool]) -> None:
    """Ask again and again, in a thread, for a minute at most."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await asyncio.to_thread(holds):
            await asyncio.to_thread(threading.Event().wait, 0.05)
