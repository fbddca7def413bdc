"""TLS with a certificate on either side and a password besides, all by reference (docs/connectors.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.spark.kafka.conftest import PASSWORD, USER, orders

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.integration.spark.conftest import Database, JvmLog
    from tests.integration.spark.kafka.conftest import Certificates
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine

JSON = {"format": "json", "schema": "id BIGINT"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(topic: Topic) -> dict[str, str]:
    """As the page has them."""
    return {
        "kafka.bootstrap.servers": topic.broker.bootstrap_of("TLS"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{LOGIN} required username="{USER}" password="${{env:TESTED_KAFKA}}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "${file:kafka-ca.pem}",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "${file:client.pem}",
        "kafka.ssl.keystore.key": "${file:client-key.pem}",
    }


async def test_a_topic_behind_certificates_and_a_password(
    *,
    start: Any,
    catch_up: Any,
    topic: Topic,
    database: Database,
    certificates: Certificates,
    secrets_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: SparkEngine,
    jvm_log: JvmLog,
) -> None:
    """Rows and lag come through, and neither password nor key is in a log."""
    chain, key = certificates.issue("client.example")
    for name, text in (
        ("client.pem", chain),
        ("client-key.pem", key),
        ("kafka-ca.pem", certificates.authority),
    ):
        (secrets_folder / name).write_text(text)
    monkeypatch.setenv("TESTED_KAFKA", PASSWORD)
    topic.produce(orders(6))
    source = topic.source(value=JSON, options=options(topic))
    query = await start(source=source, sql="SELECT id FROM source", sink=database.sink())
    await catch_up(query)
    assert database.ids() == list(range(6))
    lag = await engine.lag(query.spec)
    assert lag is not None
    assert lag.rows == 0
    said = jvm_log.all()
    assert all(line not in said for line in (PASSWORD, *key.splitlines()[1:-1]))
