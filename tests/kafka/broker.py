"""Real Kafka brokers for tests, alone or as a cluster, from the jars that `make jars` copies."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import AdminClient, NewTopic

from cli.demo.kafka_broker import HOST, START_S, KafkaBroker, new_nodes
from tests.kafka.topic import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cli.demo.kafka_broker import Node

JARS: Final = Path(__file__).parents[2] / "jars" / "kafka"


class Broker(KafkaBroker):
    """One broker, and a client of it in this process."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        node: Node | None = None,
        nodes: Sequence[Node] = (),
        listeners: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`settings` are added to those that it needs; `node` is this one of the cluster's `nodes`.

        `listeners` are further ones by name, each with its security protocol (`protocol`) and its settings.
        """
        super().__init__(JARS, folder, node=node, nodes=nodes, settings=settings)
        self._listeners = {name: f"{HOST}:{new_nodes(1)[0].port}" for name in listeners or {}}
        for name, given in (listeners or {}).items():
            _add_listener(self._settings, name, self._listeners[name], given)

    def bootstrap_of(self, listener: str) -> str:
        """Where one of the further listeners is."""
        return self._listeners[listener]

    def admin(self) -> AdminClient:
        """Who asks it for topics and offsets, and says nothing of brokers that are not up yet."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def topic(self, name: str, partitions: int = 1, **config: str) -> Topic:
        """A new, empty topic, kept three times where it can be; `config` is its own, with _ for a dot."""
        wanted = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=self.replicas,
            config={key.replace("_", "."): value for key, value in config.items()},
        )
        admin = self.admin()  # to be kept until the answer is there
        for made in admin.create_topics([wanted]).values():
            made.result(START_S)
        return Topic(self, name)


def _add_listener(settings: dict[str, str], name: str, place: str, given: Mapping[str, str]) -> None:
    for key in ("listeners", "advertised.listeners"):
        settings[key] += f",{name}://{place}"
    settings["listener.security.protocol.map"] += f",{name}:{given['protocol']}"
    for key, value in given.items():
        if key != "protocol":
            settings[f"listener.name.{name.lower()}.{key}"] = value


@contextmanager
def running(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Broker]:
    """A broker that takes requests, with its data in `folder`; the rest is as for `Broker`."""
    with _running([Broker(folder, settings, listeners=listeners)]) as (broker,):
        yield broker


@contextmanager
def running_cluster(
    folder: Path, count: int = 3, settings: Mapping[str, str] | None = None
) -> Iterator[list[Broker]]:
    """So many brokers of one cluster, each a controller; two of three replicas must have what they take."""
    nodes = new_nodes(count)
    with _running(
        [Broker(folder / f"broker-{node.number}", settings, node=node, nodes=nodes) for node in nodes]
    ) as brokers:
        yield brokers


@contextmanager
def _running(brokers: list[Broker]) -> Iterator[list[Broker]]:
    with ExitStack() as stack:
        for broker in brokers:
            stack.callback(broker.kill)
            broker.launch()
        for broker in brokers:
            broker.wait_started()
        yield brokers
