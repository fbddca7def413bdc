"""The demo's tasks on Kafka: every flight of two partitions each, and the delays of the whole topic."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cli.demo.data import PARTS
from cli.demo.file_tasks import delays_query
from cli.demo.plan import DELAYS, FLIGHTS, DemoTask, Plan
from cli.demo.truth import DELAY_COLUMNS, FLIGHT_COLUMNS, TEXT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cli.demo.plan import DemoSink

TOPIC: Final = "flights"
PARTITIONS: Final = 12
PARTITIONS_A_TASK: Final = 2
COLUMNS: Final = tuple(dict.fromkeys((*FLIGHT_COLUMNS, DELAY_COLUMNS[1])))
"""What a record's value has of a flight."""

SCHEMA: Final = ", ".join(f"{name} {'STRING' if name in TEXT_COLUMNS else 'INT'}" for name in COLUMNS)
FLIGHTS_SQL: Final = (
    f"SELECT {', '.join(FLIGHT_COLUMNS)}, partition AS kafka_partition, offset AS kafka_offset "  # noqa: S608
    "FROM source"
)
FLIGHTS_EVERY: Final = {"processing_time": "4 seconds"}
DELAYS_EVERY: Final = {"processing_time": "8 seconds"}
FLIGHTS_A_BATCH: Final = 12_000
DELAYS_A_BATCH: Final = 120_000
"""Of records; a few times what arrives meanwhile, so that a task that was away catches up."""


def record(flight: Mapping[str, str]) -> tuple[bytes, bytes]:
    """A flight as a key, the flight's number, and a JSON value; what is not known is null."""
    value = {
        name: None if flight[name] == "NA" else flight[name] if name in TEXT_COLUMNS else int(flight[name])
        for name in COLUMNS
    }
    return f"{flight['carrier']}{flight['flight']}".encode(), msgspec.json.encode(value)


def kafka_tasks(sink: DemoSink, bootstrap: str, flights: int) -> Plan:
    """All tasks of the demo, of so many flights in the topic of the brokers at `bootstrap`."""
    tasks = (*_flights_tasks(sink, bootstrap), _delays_task(sink, bootstrap, flights))
    return Plan(tasks, flights_by="kafka_partition", rows=2 * flights)


def _flights_tasks(sink: DemoSink, bootstrap: str) -> Iterator[DemoTask]:
    """Every flight of some partitions into the table `flights`, with its place in the topic."""
    for first in range(0, PARTITIONS, PARTITIONS_A_TASK):
        partitions = tuple(range(first, first + PARTITIONS_A_TASK))
        assigned = msgspec.json.encode({TOPIC: partitions}).decode()
        definition = {
            "source": _source(bootstrap, assign=assigned, maxOffsetsPerTrigger=FLIGHTS_A_BATCH),
            "sql": FLIGHTS_SQL,
            "sink": sink.definition(FLIGHTS, f"{first:02}"),
            "trigger": FLIGHTS_EVERY,
        }
        yield DemoTask(f"flights-{first:02}-{partitions[-1]:02}", definition, FLIGHTS, partitions)


def _delays_task(sink: DemoSink, bootstrap: str, flights: int) -> DemoTask:
    """The delays by carrier and hour, of the whole topic: another reader of the same records."""
    definition = {
        "source": _source(bootstrap, subscribe=TOPIC, maxOffsetsPerTrigger=DELAYS_A_BATCH),
        **delays_query(sink, TOPIC),
        "trigger": DELAYS_EVERY,
    }
    return DemoTask("delays", definition, DELAYS, tuple(itertools.chain(*PARTS.values())), flights)


def _source(bootstrap: str, **options: Any) -> dict[str, Any]:
    return {
        "format": "kafka",
        "options": {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest", **options},
        "value": {"format": "json", "schema": SCHEMA},
    }
