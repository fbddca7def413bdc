"""Which of Kafka's clients are kept, asked and let go of; the JVM is a double."""

from __future__ import annotations

import threading
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from telemetry.secrets import KnownSecrets
from worker.query_engine import QueryError
from worker.spark.classic import kafka_clients
from worker.spark.classic.backend import ClassicBackend
from worker.spark.classic.kafka_clients import (
    IDLE_S,
    MOST_CLIENTS,
    SILENT_S,
    TIMEOUT_MS,
    KafkaClients,
    client_key,
    client_settings,
    refused,
)
from worker.spark.classic.kafka_watch import ClusterWatch, ClusterWatches
from worker.spark.kafka.brokers import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 30
NO_ANSWER = "TimeoutException: Timed out waiting for a node assignment. Call: listNodes\n\nat x"


class JavaError(Exception):
    """In place of Py4J's, which needs a JVM to be made."""


class Admin:
    """A client; `said` is what it answers, or raises."""

    def __init__(self, config: dict[str, str]) -> None:
        self.config = config
        self.is_closed = False
        self.closed = threading.Event()

    def close(self, _within: Any) -> None:
        self.is_closed = True
        self.closed.set()


class Answer:
    """A future of Java's."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def get(self, *_limit: Any) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Bench:
    """Clients over a JVM that makes `Admin`s, and a clock."""

    def __init__(self) -> None:
        self.made: list[Admin] = []
        self.now = 1000.0
        admin = SimpleNamespace(create=self.create)
        clients = SimpleNamespace(admin=SimpleNamespace(Admin=admin))
        self.jvm: Any = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(kafka=SimpleNamespace(clients=clients))),
            java=SimpleNamespace(
                util=SimpleNamespace(
                    HashMap=lambda: SimpleNamespace(put=lambda *_: None),
                    concurrent=SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS="ms")),
                ),
                time=SimpleNamespace(Duration=SimpleNamespace(ofMillis=int)),
            ),
        )
        self.clients = KafkaClients(self.jvm, lambda: self.now)

    def create(self, config: Any) -> Admin:
        self.made.append(Admin(config))
        return self.made[-1]

    def ask(self, cluster: str, said: Any = "fine", *, of_any: bool = True, **how: Any) -> Any:
        with self.clients.asking({"kafka.bootstrap.servers": cluster}, Question.LAG, **how) as client:
            return client.answer(Answer(said), of_any=of_any)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(kafka_clients, "Py4JJavaError", JavaError)
    monkeypatch.setattr(kafka_clients, "describe", str)
    made = Bench()
    yield made
    made.clients.close()


def test_a_client_is_kept_from_one_question_to_the_next(bench: Bench) -> None:
    """For each cluster, and each way to log in."""
    for cluster in ("a", "b", "a"):
        assert bench.ask(cluster) == "fine"
    assert len(bench.made) == 2
    assert bench.clients.requests() == {("lag", True): 3}


def test_how_rows_are_read_makes_no_other_client(bench: Bench) -> None:
    """A hundred tasks with a fetch size of their own are one cluster; who they log in as matters."""
    options = {"kafka.bootstrap.servers": "a", "kafka.fetch.max.bytes": 7, "kafka.isolation.level": "x"}
    assert client_key(options) == client_key({"kafka.bootstrap.servers": "a", "subscribe": "t"})
    assert client_key(options) != client_key({**options, "kafka.sasl.jaas.config": "anna"})
    with bench.clients.asking(options, Question.LAG) as client:
        assert client.config["isolation.level"] == "x"


def test_a_client_that_failed_is_not_asked_again(bench: Bench) -> None:
    """It may know only brokers that have other addresses by now, or have read a file of keys of before."""
    with pytest.raises(QueryError):
        bench.ask("a", JavaError(NO_ANSWER))
    assert bench.ask("a", anyway=True) == "fine"
    assert [made.is_closed for made in bench.made] == [True, False]


def test_a_client_that_failed_is_closed_when_nobody_is_using_it_any_more(bench: Bench) -> None:
    """Another question may be under way."""
    with bench.clients.asking({"kafka.bootstrap.servers": "a"}, Question.LAG):
        with pytest.raises(QueryError):
            bench.ask("a", JavaError(NO_ANSWER))
        assert not bench.made[0].is_closed
    assert bench.made[0].is_closed


def test_clients_of_clusters_that_no_task_names_any_more_are_closed(bench: Bench) -> None:
    """After a while: a look at all tasks may take long."""
    bench.ask("old")
    bench.now += IDLE_S - 1
    bench.ask("new")
    bench.clients.close_idle()
    assert [each.is_closed for each in bench.made] == [False, False]
    bench.now += 2
    bench.clients.close_idle()
    assert [each.is_closed for each in bench.made] == [True, False]


def test_the_last_client_is_closed_though_nobody_asks_any_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task reads from Kafka by then; the thread that looks for it ends with it, and begins anew."""
    monkeypatch.setattr(kafka_clients, "SWEEP_S", 0.01)
    for asked in range(2):
        bench.ask("a")
        sweeper = bench.clients._sweeper
        assert sweeper is not None
        bench.now += IDLE_S + 1
        assert bench.made[asked].closed.wait(TIMEOUT_S)
        sweeper.join(TIMEOUT_S)
        assert not sweeper.is_alive()


def test_what_is_in_use_is_not_closed_under_its_user(bench: Bench) -> None:
    """However many there are, and however long it takes."""
    with bench.clients.asking({"kafka.bootstrap.servers": "busy"}, Question.LAG):
        for number in range(MOST_CLIENTS + 3):
            bench.now += IDLE_S
            bench.ask(str(number))
        bench.now += IDLE_S * 2
        bench.clients.close_idle()
        assert not bench.made[0].is_closed
    assert all(each.is_closed for each in bench.made[1:])


def test_no_more_than_so_many_are_kept(bench: Bench) -> None:
    """Those that were needed last."""
    for number in range(MOST_CLIENTS + 3):
        bench.now += 1
        bench.ask(str(number))
    assert [each.is_closed for each in bench.made] == [True] * 3 + [False] * MOST_CLIENTS


def test_the_end_closes_all(bench: Bench) -> None:
    """Also one that somebody was just making."""
    bench.ask("a")
    bench.clients.close()
    bench.ask("b")
    assert all(each.is_closed for each in bench.made)


def test_a_cluster_that_did_not_answer_is_left_alone_for_a_moment(bench: Bench) -> None:
    """A hundred tasks of it are told the same at once, and do not wait one after another."""
    with pytest.raises(QueryError, match="no broker of a answers") as first:
        bench.ask("a", JavaError(NO_ANSWER))
    assert first.value.outage
    with pytest.raises(QueryError, match="no broker of a answers"):
        bench.ask("a")
    assert bench.ask("b") == "fine"
    assert bench.clients.requests() == {("lag", False): 1, ("lag", True): 1}
    assert bench.ask("a", anyway=True) == "fine"
    assert bench.ask("a") == "fine"
    with pytest.raises(QueryError):
        bench.ask("a", JavaError(NO_ANSWER))
    bench.now += SILENT_S
    assert bench.ask("a") == "fine"


def test_one_broker_that_is_away_silences_no_cluster(bench: Bench) -> None:
    """The leader of a partition, say: it is an outage, but all others are asked on."""
    with pytest.raises(QueryError) as told:
        bench.ask("a", JavaError(NO_ANSWER), of_any=False)
    assert told.value.outage
    assert told.value.cause.startswith("the broker of a that is to answer does not (TimeoutException: Timed")
    assert bench.ask("a") == "fine"


def test_a_cluster_whose_name_nobody_knows_is_left_alone_too(bench: Bench) -> None:
    """Names are looked up when a client is made, which takes its time."""

    def create(_config: Any) -> Any:
        raise JavaError("ConfigException: No resolvable bootstrap urls given in bootstrap.servers")

    bench.jvm.org.apache.kafka.clients.admin.Admin.create = create
    for _ in range(2):
        with pytest.raises(QueryError, match="no broker of a answers"):
            bench.ask("a")
    assert bench.clients.requests() == {}
    assert bench.clients._silent


def test_an_error_that_is_told_again_does_not_grow(bench: Bench) -> None:
    """Python adds to the traceback of an error object each time that it is raised."""
    depths = set()
    for _ in range(3):
        with pytest.raises(QueryError) as told:
            bench.ask("a", JavaError(NO_ANSWER))
        depths.add(len(traceback.extract_tb(told.value.__traceback__)))
    assert len(depths) <= 2


def test_silences_that_are_over_are_forgotten(bench: Bench) -> None:
    """With the settings that they are kept under, passwords included."""
    for cluster in ("a", "b"):
        with pytest.raises(QueryError):
            bench.ask(cluster, JavaError(NO_ANSWER))
        bench.now += SILENT_S - 1
    assert bench.clients._sweeper is not None
    assert bench.clients.close_idle()
    assert [dict(key)["bootstrap.servers"] for key in bench.clients._silent] == ["b"]
    bench.now += SILENT_S
    assert not bench.clients.close_idle()
    assert not bench.clients._silent


def test_a_refusal_is_no_silence(bench: Bench) -> None:
    """The next one may come with another password."""
    with pytest.raises(QueryError) as told:
        bench.ask("a", JavaError("SaslAuthenticationException: Authentication failed: no\n\nat x"))
    assert (told.value.outage, told.value.permanent) == (False, True)
    assert bench.ask("a") == "fine"


def test_a_client_that_says_nothing_itself_is_an_outage() -> None:
    """Java's own exception has no message."""
    told = refused("k:9092," * 40, "java.util.concurrent.TimeoutException\n\nat x", of_any=True)
    assert told.outage
    line, _, rest = told.cause.partition("\n")
    assert len(line) < 500
    assert rest == "\nat x"


def test_brokers_that_are_secret_are_not_told_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are hidden before the list is cut."""
    known = KnownSecrets()
    known.learn("broker-of-nobody.example:9092")
    monkeypatch.setattr("telemetry.secrets.SECRETS", known)
    told = refused(
        "k:9092," * 13 + "broker-of-nobody.example:9092",
        "java.util.concurrent.TimeoutException",
        of_any=True,
    )
    assert "k:9092,***" in told.cause
    assert "broker-of" not in told.cause


def test_settings_of_the_client_are_the_source_s_but_for_its_patience() -> None:
    """Under the names that the client knows."""
    given = {"kafka.SASL.mechanism": "PLAIN", "subscribe": "t", "kafka.request.timeout.ms": 900_000}
    assert client_settings(given) == {
        "SASL.mechanism": "PLAIN",
        "request.timeout.ms": str(TIMEOUT_MS),
        "default.api.timeout.ms": str(TIMEOUT_MS),
        "client.id": "sparkherd-lag",
    }


class Nodes(Admin):
    """The client of a watched cluster; `said` is what that says."""

    def __init__(self) -> None:
        super().__init__({})
        self.said: Any = "nodes"

    def describeCluster(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(nodes=lambda: Answer(self.said))


def test_trouble_says_since_when_and_ends_with_an_answer(bench: Bench) -> None:
    """The time of the first question that was not answered stays, or each look would be news."""
    nodes, now = Nodes(), [1_700_000_000.0]
    bench.jvm.org.apache.kafka.clients.admin.Admin.create = lambda _: nodes
    watch = ClusterWatch(bench.clients, {"kafka.bootstrap.servers": "a"}, lambda: now[0])
    told = []
    for said in ("nodes", JavaError(NO_ANSWER), JavaError(NO_ANSWER), "nodes"):
        nodes.said = said
        watch.look()
        told.append(watch.trouble)
        now[0] += 60
    assert (told[0], told[3]) == (None, None)
    assert (told[1] or "").startswith("stands still since 2023-11-14 22:14:20 UTC: no broker of a answers")
    assert told[2] == told[1]
    assert bench.clients.requests() == {("watch", True): 2, ("watch", False): 2}


def test_queries_of_one_cluster_share_a_watch(bench: Bench) -> None:
    """It ends with the last of them."""
    watches, options = ClusterWatches(bench.clients), {"kafka.bootstrap.servers": "a"}
    one, two = watches.join(options), watches.join({**options, "subscribe": "other"})
    assert one._watch is two._watch
    one.close()
    assert not two._watch._over.is_set()
    two.close()
    assert two._watch._over.is_set()
    three = watches.join(options)
    assert three._watch is not two._watch
    watches.close()
    assert three._watch._over.is_set()


def test_the_end_of_the_engine_lets_go_of_brokers_and_then_of_spark() -> None:
    """Whatever becomes of the first: the JVM may be going already."""
    told: list[str] = []

    def close() -> None:
        told.append("brokers")
        raise OSError("the JVM is gone")

    backend: Any = object.__new__(ClassicBackend)
    backend.groups = SimpleNamespace(close=lambda: told.append("groups"))
    backend.brokers = SimpleNamespace(close=close)
    backend.spark = SimpleNamespace(stop=lambda: told.append("spark"))
    backend.jvm = SimpleNamespace(close=lambda stop: stop())
    with pytest.raises(OSError, match="gone"):
        backend.close()
    assert told == ["groups", "brokers", "spark"]
