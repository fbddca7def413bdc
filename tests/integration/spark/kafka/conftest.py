"""One real broker for the tests of this folder; each test has topics of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from cli.demo.kafka_broker import HOST
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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


class Certificates:
    """An authority, and the certificate and key of who shows one, as PEM."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self.authority = self._authority.cert_pem.bytes().decode()

    def issue(self, name: str) -> tuple[str, str]:
        """A certificate and its key, in the one form of keys that Kafka reads (PKCS #8)."""
        issued = self._authority.issue_cert(name, key_type=trustme.KeyType.RSA)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return "".join(each.bytes().decode() for each in issued.cert_chain_pems), text.decode()

    def listener(self, folder: Path) -> dict[str, str]:
        """One that asks for a certificate of this authority, and for the password as well."""
        (folder / "server.pem").write_text("".join(reversed(self.issue(HOST))))
        (folder / "authority.pem").write_text(self.authority)
        return {
            **SASL,
            "protocol": "SASL_SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "authority.pem"),
        }


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Broker]:
    tls = certificates.listener(tmp_path_factory.mktemp("tls"))
    with kafka.running(tmp_path_factory.mktemp("kafka"), listeners={"SASL": SASL, "TLS": tls}) as broker:
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


async def eaten(topic: Topic, folder: Path, partition: int, offset: int) -> None:
    """Retention has taken all rows before `offset`."""
    cut = {"version": 1, "partitions": [{"topic": topic.name, "partition": partition, "offset": offset}]}
    (folder / "eaten.json").write_text(json.dumps(cut))
    words = "--offset-json-file", str(folder / "eaten.json")
    await asyncio.to_thread(topic.broker.tool, "kafka-delete-records", *words)


async def until(holds: Callable[[], bool]) -> None:
    """Ask again and again, in a thread, for a minute at most."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await asyncio.to_thread(holds):
            await asyncio.to_thread(threading.Event().wait, 0.05)
