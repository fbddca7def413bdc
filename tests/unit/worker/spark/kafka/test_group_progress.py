"""Telling consumer groups: what goes wrong there is a warning, and no more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from definition.document import parse_definition
from worker.lag.group_offsets import Kept, Mark, Outcome
from worker.query_engine import QueryError, QuerySpec
from worker.spark.kafka.group_progress import GroupProgress
from worker.spark.kafka.source_offsets import kafka_sources
from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.spark.kafka.group_progress import Following

DEFINITION = parse_definition(
    b'{"sources": {'
    b' "a": {"format": "kafka", "options": {"subscribe": "t"}, "commit_group": "told"},'
    b' "b": {"format": "kafka", "options": {"subscribe": "u"}, "commit_group": "told"}},'
    b' "sql": "SELECT 1", "sink": {"format": "noop"}}'
)
TIMEOUT_S = 30
AWAY = QueryError("no broker answers\nat x", outage=True)
AT_ONCE = Backoff(first_s=0.001, limit_s=0.001)


class Brokers:
    """Take what they are told, unless they have an `answer` of another kind, which is asked for each time."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, int, int]] = []
        self.answer: Outcome | Exception = Outcome()
        self.asked = threading.Semaphore(0)
        self.taken = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.may_answer.set()

    def commit(self, _options: Any, group: str, offsets: Any, mark: Mark) -> Outcome:
        self.asked.release()
        assert self.may_answer.wait(TIMEOUT_S)
        answer = self.answer
        if isinstance(answer, Exception):
            raise answer
        if answer == Outcome():
            [(topic, partitions)] = offsets.items()
            self.written.append((group, topic, partitions[0], mark.token))
            self.taken.release()
        return answer


class Bench:
    """Tasks of two sources with one group, whose batches end at offsets."""

    def __init__(self, retry: Backoff = AT_ONCE) -> None:
        self.brokers = Brokers()
        self.groups = GroupProgress(self.brokers, retry)  # type: ignore[arg-type]  # all that it needs of them

    def begin(self, task: str = "t1", token: int = 7, **committed: int) -> Following:
        """A query starts, whose checkpoint has offsets by topic."""
        spec = QuerySpec("g", task, token, DEFINITION)
        return self.groups.follow(spec, list(kafka_sources(DEFINITION)), offsets(committed), dict)

    def tries(self, count: int) -> None:
        """Brokers have been asked so many times more, and all answers but the last were taken in."""
        for _ in range(count):
            assert self.brokers.asked.acquire(timeout=TIMEOUT_S)

    def recover(self, count: int = 1) -> None:
        """Brokers take what they are told from now on; so many have been told then."""
        self.brokers.answer = Outcome()
        for _ in range(count):
            assert self.brokers.taken.acquire(timeout=TIMEOUT_S)

    def close(self) -> None:
        """No more; what was under way is done."""
        self.groups.close()
        self.groups._thread.join(TIMEOUT_S)
        assert not self.groups._thread.is_alive()


def offsets(ends: dict[str, int]) -> dict[str, dict[str, dict[int, int]]]:
    """By the place of the source that reads the topic."""
    places = {"t": "sources.a", "u": "sources.b"}
    return {places[topic]: {topic: {0: offset}} for topic, offset in ends.items()}


def batch(following: Following, **ends: int) -> None:
    """A batch is finished."""
    following.tell(offsets(ends))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.brokers.may_answer.set()
    made.close()


def warnings(logs: Any) -> list[tuple[str, str]]:
    return [(line["source"], line["why"]) for line in logs if line["log_level"] == "warning"]


def test_sources_of_one_task_with_one_group_are_all_told(bench: Bench) -> None:
    """Also those that wait together for brokers that are slow."""
    bench.brokers.may_answer.clear()
    following = bench.begin(t=1, u=1)
    bench.tries(1)
    batch(following, t=3, u=4)
    bench.brokers.may_answer.set()
    bench.close()
    assert sorted(bench.brokers.written[-2:]) == [("told", "t", 3, 7), ("told", "u", 4, 7)]


def test_a_query_that_starts_tells_what_its_checkpoint_has(bench: Bench) -> None:
    """Its former owner may have died before it could; there may never be another batch."""
    bench.begin(t=5)
    bench.begin()
    bench.close()
    assert bench.brokers.written == [("told", "t", 5, 7)]


def test_brokers_that_are_away_are_told_of_once_and_asked_until_they_are_back(bench: Bench) -> None:
    """No further batch is needed; the task is none the worse for it, which its clusters' watches tell."""
    bench.brokers.answer = AWAY
    with capture_logs() as logs:
        following = bench.begin(t=3)
        bench.tries(5)
        assert following.trouble is None
        bench.recover()
        bench.close()
    assert bench.brokers.written == [("told", "t", 3, 7)]
    assert warnings(logs) == [("sources.a", "no broker answers")]


def test_the_last_batch_of_a_query_arrives_after_its_end(bench: Bench) -> None:
    """Brokers were away when it was stopped."""
    bench.brokers.answer = AWAY
    following = bench.begin(t=3)
    bench.tries(2)
    following.close()
    bench.tries(2)
    bench.recover()
    bench.close()
    assert bench.brokers.written == [("told", "t", 3, 7)]
    assert bench.groups._schedule.wait_s(0.0) is None


def test_whatever_goes_wrong_the_next_are_told(bench: Bench) -> None:
    """An error that nobody has foreseen is told once, with a cause id, and tried again."""
    bench.brokers.answer = ZeroDivisionError("of nobody's")
    with capture_logs() as logs:
        bench.begin(t=3)
        bench.tries(4)
        bench.begin("t2", u=9)
        bench.recover(2)
        bench.close()
    assert sorted(bench.brokers.written) == [("told", "t", 3, 7), ("told", "u", 9, 7)]
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["cause_id"]
    assert (line["task"], line["source"], line["consumer_group"]) == ("t1", "sources.a", "told")


def test_a_newer_owner_s_group_is_told_no_more(bench: Bench) -> None:
    """Until this worker has a newer token itself."""
    bench.brokers.answer = Outcome(is_fenced=True)
    following = bench.begin(t=3)
    bench.close()
    batch(following, t=5)
    assert bench.groups._schedule.wait_s(0.0) is None
    assert bench.brokers.written == []
    assert following.trouble is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Outcome(kept=(Kept("t", 2, None),)), "keeps its offsets of topic t"),
        (Outcome(has_members=True), "has members"),
        (QueryError("GroupAuthorizationException: no\nat x"), "GroupAuthorizationException: no"),
    ],
)
def test_what_is_somebody_else_s_is_the_task_s_trouble_until_it_is_not(
    bench: Bench, answer: Outcome | Exception, told: str
) -> None:
    """One warning that names source, group and topic, however often it is looked at again."""
    bench.brokers.answer = answer
    with capture_logs() as logs:
        following = bench.begin(t=3)
        bench.tries(4)
        trouble = following.trouble or ""
        assert trouble.startswith("sources.a.commit_group: consumer group told ")
        assert told in trouble
        bench.recover()
        bench.close()
    assert following.trouble is None
    assert warnings(logs) == [("sources.a", trouble)]
    assert bench.brokers.written == [("told", "t", 3, 7)]


def test_a_topic_that_is_somebody_else_s_does_not_keep_the_others_waiting() -> None:
    """Only a source of which nothing may be written waits for its next try."""
    bench = Bench(Backoff(first_s=3600.0, limit_s=3600.0))
    bench.brokers.answer = Outcome(kept=(Kept("t", 0, None),))
    following = bench.begin()
    for end in range(3):
        following.tell({"sources.a": {"t": {0: end}, "x": {0: end}}})
        bench.tries(1)
    following.tell({"sources.a": {"t": {0: 1}}})
    bench.tries(1)
    bench.begin("t2", u=1)
    bench.tries(1)
    following.tell({"sources.a": {"t": {0: 4}, "x": {0: 4}}})
    bench.close()
    assert not bench.brokers.asked.acquire(blocking=False)


def test_the_end_waits_for_what_was_not_tried(bench: Bench) -> None:
    """The last batch of a task that is stopped with its worker."""
    bench.brokers.may_answer.clear()
    following = bench.begin(t=3)
    bench.tries(1)
    batch(following, t=4)
    following.close()
    ending = threading.Thread(target=bench.close)
    ending.start()
    bench.brokers.may_answer.set()
    ending.join(TIMEOUT_S)
    assert bench.brokers.written[-1] == ("told", "t", 4, 7)


def test_the_end_waits_for_no_broker_that_is_away(bench: Bench) -> None:
    """What was tried once in vain is for the next owner to tell."""
    bench.brokers.answer = AWAY
    bench.begin(t=3)
    bench.tries(2)
    bench.close()
    assert bench.brokers.written == []
