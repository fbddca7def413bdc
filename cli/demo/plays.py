"""The two plays of the demo, step by step: on files, and on a topic of Kafka's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cli.client.admin_client import AdminClient
from cli.demo.data import write_parts
from cli.demo.file_tasks import file_tasks
from cli.demo.kafka_tasks import PARTITIONS, TOPIC, kafka_tasks
from cli.demo.sink_rows import SinkRows
from cli.demo.story import FIRST_WORKERS, BrokerRestart, Failover, Scaling, Story

if TYPE_CHECKING:
    from pathlib import Path

    from cli.demo.flight_topic import FlightTopic
    from cli.demo.herd import Herd
    from cli.demo.plan import DemoSink, Plan
    from cli.demo.view import View

FILES_A_PART: Final = 18
FEWEST_FILES: Final = 6
FLIGHTS_A_FILE: Final = 1000
"""Of all parts together: a quick look has fewer batches, too."""
A_THIRD: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What its steps led to; of a play without a broker, None of that. `most_lag` is in rows."""

    failover: Failover
    scaling: Scaling
    broker: BrokerRestart | None = None
    most_lag: int | None = None


def play_files(herd: Herd, folder: Path, sink: DemoSink, flights: int, shown: View) -> Outcome:
    """A worker is killed half-way, and another one joins, while flights are read from files."""
    _start(herd, folder, shown)
    files = min(FILES_A_PART, max(FEWEST_FILES, flights // FLIGHTS_A_FILE))
    plan = file_tasks(folder, write_parts(folder / "parts", limit=flights, files=files), sink)
    story = _story(herd, sink, plan, shown)
    story.gather()
    story.create_tasks()
    outcome = Outcome(story.kill_one(), story.add_one())
    story.finish()
    return outcome


def play_kafka(herd: Herd, folder: Path, sink: DemoSink, topic: FlightTopic, shown: View) -> Outcome:
    """The same while flights arrive in a topic, and its broker is killed and started again half-way."""
    _start(herd, folder, shown)
    topic.open()
    herd.depend_on(topic.trouble)
    shown.say(f"a Kafka broker listens at {topic.broker.bootstrap}; topic {TOPIC}, {PARTITIONS} partitions")
    story = _story(herd, sink, kafka_tasks(sink, topic.broker.bootstrap, topic.flights), shown)
    story.gather()
    story.create_tasks()
    topic.begin()
    shown.say(f"{topic.flights:,} flights begin to arrive")
    failover = story.kill_one(at=A_THIRD)
    broker = story.restart_broker(topic)
    scaling = story.add_one()
    story.finish()
    story.catch_up()
    return Outcome(failover, scaling, broker, story.lags.most)


def _start(herd: Herd, folder: Path, shown: View) -> None:
    url = herd.start_manager()
    shown.say(f"a manager serves at {url}; logs are in {folder}")
    for worker in FIRST_WORKERS:
        herd.start_worker(worker)
    shown.say(f"{len(FIRST_WORKERS)} workers start, each with a Spark session of its own")


def _story(herd: Herd, sink: DemoSink, plan: Plan, shown: View) -> Story:
    return Story(herd, AdminClient([herd.url]), plan, shown, SinkRows(sink, plan))
