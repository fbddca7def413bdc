"""Telling consumer groups: what goes wrong there is a warning, and no more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from definition.document import parse_definition
from worker.query_engine import QueryError, QuerySpec
from worker.spark.group_progress import GroupProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFINITION = parse_definition(
    b'{"source": {"format": "kafka", "options": {"subscribe": "t"}, "commit_group": "told"},'
    b' "sink": {"format": "noop"}}'
)
TIMEOUT_S = 30


class Brokers:
    """Take what they are told, unless they are away or the group is another's."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int, int]] = []
        self.trouble: QueryError | None = None
        self.is_anothers = False
        self.asked = threading.Semaphore(0)

    def commit(self, _options: Any, group: str, offsets: Any, token: int) -> bool:
        try:
            if self.trouble is not None:
                raise self.trouble
            if not self.is_anothers:
                self.written.append((group, offsets["t"][0], token))
            return not self.is_anothers
        finally:
            self.asked.release()


class Bench:
    """One task of one source, whose batches end at offsets."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.groups = GroupProgress(self.brokers)  # type: ignore[arg-type]  # all that it needs of them

    def batch(self, offset: int, token: int = 7) -> None:
        """A batch is finished; returns when brokers have been asked, and what came of it is done."""
        spec = QuerySpec("g", "t1", token, DEFINITION)
        self.groups.tell(spec, list(DEFINITION.views.values()), [{"t": {0: offset}}])
        assert self.brokers.asked.acquire(timeout=TIMEOUT_S)

    def close(self) -> None:
        """No more; what was under way is done."""
        self.groups.close()
        self.groups._thread.join(TIMEOUT_S)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def test_brokers_that_are_away_are_told_of_once_and_the_next_batch_makes_up_for_it(bench: Bench) -> None:
    """An outage of many batches is one warning; the batches themselves hear nothing of it."""
    with capture_logs() as logs:
        bench.batch(3)
        bench.brokers.trouble = QueryError("no broker answers\nat x")
        bench.batch(5)
        bench.batch(8)
        bench.brokers.trouble = None
        bench.batch(9)
        bench.brokers.trouble = QueryError("the group has members")
        bench.batch(11)
        bench.close()
    assert bench.brokers.written == [("told", 3, 7), ("told", 9, 7)]
    warned = [(line["why"], line["consumer_group"]) for line in logs if line["log_level"] == "warning"]
    assert warned == [("no broker answers", "told"), ("the group has members", "told")]


def test_a_group_of_a_newer_owner_is_told_no_more(bench: Bench) -> None:
    """Until this worker has a newer token itself."""
    bench.brokers.is_anothers = True
    bench.batch(3)
    bench.close()
    assert bench.groups._fenced == {("t1", "told"): 7}
    assert bench.brokers.written == []
