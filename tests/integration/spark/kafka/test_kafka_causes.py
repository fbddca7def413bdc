"""Bad input and brokers that are away: each a clear cause in time, and nothing lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import catch_up
from tests.integration.spark.kafka.conftest import PASSWORD, USER, eaten, orders, until
from worker.query_engine import QueryError
from worker.spark.classic import kafka_clients, kafka_watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.spark.conftest import Database, JvmLog
    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery

SQL = "SELECT offset AS id, partition FROM source"
WRONG = "wr0ng-Passphrase-Qq7"
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'
TIMEOUT_S = 60


@pytest.fixture
def be_impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Brokers have a second and a half from then on, where nobody is expected to answer in it."""

    def patch() -> None:
        monkeypatch.setattr(kafka_clients, "TIMEOUT_MS", 1500)
        monkeypatch.setattr(
            kafka_clients, "SILENT_S", 0.0
        )  # the next test is to ask, and not be told of this
        monkeypatch.setattr(kafka_watch, "LOOK_S", 0.2)

    return patch


async def refused(start: Any, **definition: Any) -> QueryError:
    """How a start ends."""
    with pytest.raises(QueryError) as raised:
        await start(**definition)
    return raised.value


def sasl(broker: Broker, password: str) -> dict[str, str]:
    """Options of a source that logs in."""
    return {
        "kafka.bootstrap.servers": broker.bootstrap_of("SASL"),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": LOGIN.format(USER, password),
    }


NOWHERE = {"kafka.bootstrap.servers": "127.0.0.1:1"}
TLS = {"kafka.security.protocol": "SSL"}
BEYOND = {"startingOffsets": '{"NAME": {"0": 1000, "1": 0, "2": 0}}'}
MISSING = {"assign": '{"NAME": [0, 7]}', "subscribe": None}
ALL_MISSING = {**MISSING, "assign": '{"NAME": [7]}'}
NOT_READ = {**MISSING, "assign": '{"NAME": [0]}', "startingOffsets": '{"NAME": {"0": 0, "1": 0}}'}


@pytest.mark.parametrize(
    ("options", "said", "kind"),
    [
        ({"subscribe": "nope"}, "source.options.subscribe: topic nope is not there", ""),
        (NOWHERE, "source: no broker of 127.0.0.1:1 answers (TimeoutException: ", "outage"),
        (
            TLS,
            "is kafka.bootstrap.servers right, and kafka.security.protocol that of its listener?",
            "outage",
        ),
        (BEYOND, "source.options.startingOffsets: topic NAME, partition 0: wants offset 1000", "permanent"),
        (MISSING, "source.options.assign: topic NAME has no partition 7", ""),
        (ALL_MISSING, "source.options.assign: topic NAME has no partition 7", ""),
        (NOT_READ, "source.options.startingOffsets: names topic NAME, partition 1, which the", "permanent"),
        ({**TLS, "kafka.ssl.truststore.location": "/absent.jks"}, "/absent.jks", ""),
        ({"kafka.security.protocol": "SASLL"}, "Invalid value SASLL for configuration", "permanent"),
    ],
)
async def test_what_cannot_be_read_is_told_before_the_query_begins(
    *,
    start: Any,
    topic: Topic,
    database: Database,
    be_impatient: Callable[[], None],
    options: dict[str, Any],
    said: str,
    kind: str,
) -> None:
    """In one line that says what it is about, and whether another try is worth it."""
    if kind == "outage":
        be_impatient()
    given = {name: value and value.replace("NAME", topic.name) for name, value in options.items()}
    source = topic.source(options=given)
    source["options"] = {name: value for name, value in source["options"].items() if value is not None}
    error = await refused(start, source=source, sql=SQL, sink=database.sink())
    assert said.replace("NAME", topic.name) in error.cause.partition("\n")[0]
    assert (error.permanent, error.outage) == (kind == "permanent", kind == "outage")


def contents(*places: Path) -> list[bytes]:
    """Of files, and of all files in folders."""
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    return [file.read_bytes() for file in files if file.is_file()]


async def test_a_password_by_reference_is_used_and_is_nowhere(
    *,
    start: Any,
    topic: Topic,
    database: Database,
    secrets_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: SparkEngine,
    jvm_log: JvmLog,
    spark: Any,
) -> None:
    """A wrong one is permanent, names the source and shows neither; the right one reads."""
    monkeypatch.setenv("TESTED_WRONG", WRONG)
    (secrets_folder / "kafka").write_text(PASSWORD)
    topic.produce(orders(5), partition=0)
    wrong = topic.source(options=sasl(topic.broker, "${env:TESTED_WRONG}"))
    error = await refused(start, source=wrong, sql=SQL, sink=database.sink())
    line = error.cause.partition("\n")[0]
    assert line.startswith("source: SaslAuthenticationException: Authentication failed: Invalid username or")
    assert error.permanent
    right = topic.source(options=sasl(topic.broker, "${file:kafka}"), commit_group=f"{topic.name}-sasl")
    query = await start(source=right, sql=SQL, sink=database.sink())
    await catch_up(query)
    assert database.ids() == list(range(5))
    lag = await engine.lag(query.spec)
    assert lag is not None
    assert lag.rows == 0
    checkpoint = engine._settings.checkpoint(query.spec.group, query.spec.task)
    command = f"/proc/{engine._backend.jvm._process.pid}/cmdline"  # type: ignore[union-attr]
    told = contents(Path(checkpoint), database.path.parent, Path(command), Path("/proc/self/cmdline"))
    conf = dict(spark.sparkContext.getConf().getAll())
    plan = query._handle.query._jsq.streamingQuery().lastExecution().toString()
    said = [error.cause, jvm_log.all(), str(conf), str(spark.sql("SET -v").collect()), plan]
    told += [text.encode() for text in said]
    assert all(PASSWORD.encode() not in text and WRONG.encode() not in text for text in told)


async def test_a_certificate_of_an_authority_that_nobody_trusts_is_told(
    start: Any, topic: Topic, database: Database
) -> None:
    """For good, with the setting that names the authority."""
    tls = {"kafka.bootstrap.servers": topic.broker.bootstrap_of("TLS"), "kafka.security.protocol": "SASL_SSL"}
    source = topic.source(options={**sasl(topic.broker, PASSWORD), **tls})
    error = await refused(start, source=source, sql=SQL, sink=database.sink())
    assert error.permanent
    assert "name that one, of Kafka with kafka.ssl.truststore.location" in error.cause.partition("\n")[0]


async def test_rows_that_retention_has_eaten_are_named_and_their_loss_may_be_accepted(
    start: Any, topic: Topic, database: Database, tmp_path: Path
) -> None:
    """Topic, partition, both offsets and the choices; with the loss accepted, all rows that are left."""
    topic.produce(orders(4), partition=1)
    query = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    topic.produce(orders(10), partition=1)
    await eaten(topic, tmp_path, 1, 9)
    error = await refused(start, token=2, source=topic.source(), sql=SQL, sink=database.sink())
    place = (
        f"source: [KAFKA_DATA_LOSS] topic {topic.name}, partition 1: wants offset 4, the earliest there is 9"
    )
    assert error.cause.startswith(f"{place} (5 rows are gone): accept that with `failOnDataLoss: false`")
    assert error.permanent
    accepted = topic.source(options={"failOnDataLoss": False})
    query = await start(token=3, source=accepted, sql=SQL, sink=database.sink())
    await catch_up(query)
    assert database.ids() == [0, 1, 2, 3, 9, 10, 11, 12, 13]


def made_anew(topic: Topic, partitions: int) -> Topic:
    """Deleted, and there again as soon as the broker lets it be."""
    admin = topic.broker.admin()
    for deleted in admin.delete_topics([topic.name]).values():
        deleted.result(TIMEOUT_S)
    while topic.name in admin.list_topics(timeout=TIMEOUT_S).topics:
        pass
    return topic.broker.topic(topic.name, partitions)


async def test_a_topic_that_was_made_anew_under_a_query_is_told(
    start: Any, topic: Topic, database: Database
) -> None:
    """First in Spark's words, with what to do; by the next start with topic, partition and offsets."""
    topic.produce(orders(4), partition=0)
    query: SparkQuery = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await asyncio.to_thread(made_anew, topic, 3)
    async with asyncio.timeout(TIMEOUT_S):
        ended = await query.ended()
    assert ended is not None
    assert not ended.permanent
    line = ended.cause.partition("\n")[0]
    assert "`sparkherd tasks reset`" in line or "create the topic" in line
    error = await refused(start, token=2, source=topic.source(), sql=SQL, sink=database.sink())
    place = f"source: [KAFKA_DATA_LOSS] topic {topic.name}, partition 0: wants offset 4"
    assert error.cause.startswith(f"{place}, and the next row will get 0: the topic was made anew")
    assert error.permanent
    assert database.ids() == list(range(4))


async def test_a_topic_that_was_made_anew_and_has_as_many_rows_again_is_known_by_its_id(
    start: Any, topic: Topic, database: Database
) -> None:
    """Its first rows would be left out without a word; whoever accepts that goes on from where it was."""
    topic.produce(orders(4), partition=0)
    query = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    await asyncio.to_thread(made_anew, topic, 3)
    topic.produce(orders(6), partition=0)
    error = await refused(start, token=2, source=topic.source(), sql=SQL, sink=database.sink())
    assert error.cause.startswith(f"source: [KAFKA_DATA_LOSS] topic {topic.name} was made anew (its id was ")
    accepted = topic.source(options={"failOnDataLoss": False})
    await catch_up(await start(token=3, source=accepted, sql=SQL, sink=database.sink()))
    assert database.ids() == list(range(6))


async def test_a_broker_that_is_away_is_told_while_the_query_runs_and_it_goes_on_by_itself(
    start: Any, topic: Topic, database: Database, be_impatient: Callable[[], None]
) -> None:
    """It stays running, says why it stands still, and reads on when the broker is back: each row once."""
    topic.produce(orders(4), partition=0)
    source = topic.source(commit_group=f"{topic.name}-away")
    query: SparkQuery = await start(source=source, sql=SQL, sink=database.sink())
    await catch_up(query)
    assert query.trouble is None
    be_impatient()
    topic.broker.freeze()
    try:
        await until(lambda: query.trouble is not None)
        told = query.trouble or ""
        assert told.startswith("stands still since 2")
        assert f"no broker of {topic.broker.bootstrap} answers" in told
    finally:
        topic.broker.thaw()
    topic.produce(orders(3), partition=1)
    await until(lambda: query.trouble is None)
    await catch_up(query)
    assert database.query("SELECT partition, id FROM flights ORDER BY 1, 2") == [
        *((0, n) for n in range(4)),
        *((1, n) for n in range(3)),
    ]
