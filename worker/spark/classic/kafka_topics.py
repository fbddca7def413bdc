"""Topics and their partitions in bulk: one call into the JVM for all of them.

A call through Py4J takes some tenths of a millisecond, so thousands of partitions are not asked for one by
one: `KafkaTopics.java` takes and gives whole lists as text. Topics are matched there, too, because patterns
are Java's: Python's are others, and hold up the whole worker while they search.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_plus

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from worker.query_engine import QueryError
from worker.spark.causes import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.spark.classic.kafka_clients import KafkaClient

STEPS_EACH: Final = 1_000_000
"""Characters of a topic's name that a pattern may look at: with `.*` at both ends a few ten thousand."""
STEPS_IN_ALL: Final = 1_000_000_000
"""Of all names, some ten seconds' work; Spark does it again for each batch."""
POLL_MS: Final = 1000
"""How long unread rows are waited for, of those partitions that have not shown one yet."""
TIMES_MS: Final = 5000
"""How long such rows are read in one look; what has not come by then has no time."""
_NO_ID: Final = "A" * 22
"""How Kafka writes the id of a topic that has none."""
_NAME: Final = "KafkaTopics"
_OPTION: Final = "subscribePattern"

Place = tuple[str, int]
"""A topic, and the number of one of its partitions."""


class Topic(NamedTuple):
    """What brokers say of a topic: its id, None if they give out none, and how many partitions it has.

    `unled` are the numbers of those that have no leader at the moment.
    """

    topic_id: str | None
    partitions: int
    unled: frozenset[int] = frozenset()


class KafkaTopics:
    """Asks about many at once; for any thread. One for each JVM: Py4J knows classes by their names alone."""

    def __init__(self, jvm: Any) -> None:
        """`jvm` is Py4J's view of the JVM that has Kafka's client."""
        self._jvm = jvm
        self._lock = threading.Lock()
        self._made: Any = None

    def matching(self, names: Any, pattern: str) -> list[str]:
        """Those of a collection of names that a pattern of Java's finds something in, as Spark does.

        Raises:
            QueryError: it is no pattern, or takes too many steps, for one name, or for so many.
        """
        try:
            found = str(self._java.matching(names, pattern, STEPS_EACH, STEPS_IN_ALL))
        except IllegalArgumentException as error:
            told = refusal(error)
            raise QueryError.at(_OPTION, told.cause, permanent=told.permanent) from None
        if found.startswith("?"):
            raise _too_slow(pattern, found[1:], names)
        return found.splitlines()

    def named(self, names: Any, wanted: Iterable[str]) -> Any:
        """Those of a set of Java's that are wanted, as another; a text of several lines names no topic."""
        return self._java.named(names, "\n".join(name for name in wanted if "\n" not in name))

    def described(self, topics: Any) -> dict[str, Topic]:
        """What a client's description of topics says."""
        lines = (line.split(" ") for line in str(self._java.described(topics)).splitlines())
        return {
            name: Topic(None if topic_id == _NO_ID else topic_id, int(count), frozenset(map(int, unled)))
            for name, topic_id, count, *unled in lines
        }

    def offsets(
        self, client: KafkaClient, places: Iterable[Place], end: str, isolation: str
    ) -> dict[Place, int]:
        """The offsets at one end of partitions: `earliest`, or `latest` at a level of isolation.

        Those of which brokers do not tell it are left out, unless they tell of none.
        """
        asked = list(places)
        if not asked:
            return {}
        admin = self._jvm.org.apache.kafka.clients.admin
        spec = getattr(admin.OffsetSpec, end)()
        level = getattr(self._jvm.org.apache.kafka.common.IsolationLevel, isolation)
        wanted = self._wanted(asked, spec)
        result = client.admin.listOffsets(wanted, admin.ListOffsetsOptions(level))
        try:
            client.answer(result.all())
        except Py4JJavaError:
            if not (found := self._offsets(result, wanted)):
                raise
            return found
        return self._offsets(result, wanted)

    def first_times(
        self, client: KafkaClient, settings: Any, positions: Mapping[Place, int]
    ) -> dict[Place, int]:
        """When the row at each of these offsets was written, in ms since 1970, as far as it comes in time.

        Args:
            client: is told of each question.
            settings: of a consumer, as a map of Java's.
            positions: the offset in each partition.
        """
        polls, *lines = str(
            self._java.firstTimes(settings, _lines(positions), POLL_MS, TIMES_MS)
        ).splitlines()
        for _ in range(int(polls)):
            client.count(answered=True)
        return _by_place(lines)

    def partitions(self, places: Iterable[Place]) -> Any:
        """A collection of Java's."""
        return self._wanted(places, None).keySet()

    def commits(self, positions: Mapping[Place, int], metadata: str) -> Any:
        """What a client writes to a group: offsets, and what is to stand beside each, as a map of Java's."""
        return self._java.commits(_lines(positions), metadata)

    def metadata(self, committed: Any) -> dict[Place, str]:
        """What stands beside the offsets of a group, as a client has them, where there are any."""
        lines = (line.split(" ") for line in str(self._java.metadata(committed)).splitlines())
        return {(topic, int(number)): unquote_plus(text) for topic, number, text in lines}

    def _wanted(self, places: Iterable[Place], of_each: Any) -> Any:
        return self._java.wanted("\n".join(f"{topic} {number}" for topic, number in places), of_each)

    def _offsets(self, result: Any, wanted: Any) -> dict[Place, int]:
        """Those that have arrived."""
        return _by_place(str(self._java.offsets(result, wanted)).splitlines())

    @property
    def _java(self) -> Any:
        """Compiled when it is first needed: where there are no Kafka sources, there may be no client."""
        with self._lock:
            if self._made is None:
                compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
                compiler.cook(_source())
                self._made = compiler.getClassLoader().loadClass(_NAME).newInstance()
            return self._made


def _too_slow(pattern: str, name: str, names: Any) -> QueryError:
    if name:
        why = f"looks at the name of topic {name} for too long, as nested repeats do"
    else:
        why = f"takes too long for the names of {names.size():,} topics"
    return QueryError.at(_OPTION, f"{pattern} {why}; write it more simply", permanent=bool(name))


def _lines(positions: Mapping[Place, int]) -> str:
    return "\n".join(f"{topic} {number} {offset}" for (topic, number), offset in positions.items())


def _by_place(lines: Iterable[str]) -> dict[Place, int]:
    split = (line.split(" ") for line in lines)
    return {(topic, int(number)): int(value) for topic, number, value in split}


@cache
def _source() -> str:
    return Path(__file__).with_name(f"{_NAME}.java").read_text()
