from __future__ import annotations

import pytest

from protocol.messages.resources import WorkerResources
from worker.isolation.deaths import Exit
from worker.isolation.lifecycle import Begun, IsUp, Kill, Lifecycle, Over, Send, State, Step
from worker.isolation.messages import (
    Answer,
    At,
    Ended,
    Fault,
    Lost,
    MayWrite,
    News,
    Refused,
    Started,
    Stop,
    Takes,
    Up,
)
from worker.query_engine import QueryError

FAULT = Fault("wrong", fenced=True, permanent=False, outage=False, path=None)


class Lease:
    """The worker's, in the hands of a test."""

    holds = True

    def __call__(self) -> bool:
        return self.holds


@pytest.fixture
def lease() -> Lease:
    return Lease()


@pytest.fixture
def life(lease: Lease) -> Lifecycle:
    return Lifecycle(lease, heap="512m", silence_limit_s=3.0)


def running(life: Lifecycle) -> Lifecycle:
    """Up and started."""
    life.received(Up())
    life.received(Started("/c", None))
    return life


def test_a_start_comes_further_step_by_step(life: Lifecycle) -> None:
    """Whoever waits for it hears of each."""
    assert life.received(At("Spark")) == [Step("Spark")]
    assert life.received(Up()) == [IsUp()]
    assert life.received(Started("/c", 4)) == [Begun("/c", 4)]
    assert life.state is State.RUNNING


def test_a_start_that_is_refused_is_over(life: Lifecycle) -> None:
    """The end of the process says nothing new then."""
    assert life.received(Refused(FAULT)) == [Over(QueryError("wrong", fenced=True))]
    assert life.state is State.OVER
    assert life.exited(Exit(0)) == []


def test_news_are_kept(life: Lifecycle) -> None:
    """The last ones."""
    news = News(has_work=True)
    assert running(life).received(news) == []
    assert life.news is news


def test_what_its_spark_takes_is_kept(life: Lifecycle) -> None:
    """By its last word."""
    assert running(life).resources is None
    takes = WorkerResources(heap_bytes=5)
    assert life.received(Takes(takes)) == []
    assert life.resources is takes


def test_the_lease_is_asked_at_each_question(life: Lifecycle, lease: Lease) -> None:
    """What was true of the last batch says nothing of this one."""
    assert running(life).received(MayWrite(1)) == [Send(Answer(1, may_write=True))]
    lease.holds = False
    assert life.received(MayWrite(2)) == [Send(Answer(2, may_write=False))]


def test_an_end_in_order_and_a_failure(lease: Lease) -> None:
    """As the process tells them."""
    for fault in (None, FAULT):
        life = running(Lifecycle(lease, heap="512m", silence_limit_s=3.0))
        assert life.received(Ended(fault)) == [Over(None if fault is None else fault.error)]


@pytest.mark.parametrize("last", [Ended(FAULT), Exit(-9), Refused(FAULT)])
def test_an_end_that_was_asked_for_is_one_in_order(life: Lifecycle, last: Ended | Refused | Exit) -> None:
    """Whatever comes of it: the process may have been killed for taking too long."""
    assert running(life).stop(30.0) == [Send(Stop(30.0))]
    assert (life.exited(last) if isinstance(last, Exit) else life.received(last)) == [Over(None)]


@pytest.mark.parametrize("end", [None, QueryError("closed")])
def test_a_query_that_is_to_end_before_it_runs_has_not_begun(life: Lifecycle, end: QueryError | None) -> None:
    """The start ends with it, however far the process has come when it hears of that."""
    life.received(Up())
    assert life.stop(0.0, end) == [Send(Stop(0.0))]
    assert life.received(Started("/c", None)) == []
    assert life.received(Ended(None)) == [Over(end)]


def test_the_first_who_asks_for_an_end_says_what_it_is(life: Lifecycle) -> None:
    """A later one may only make it quicker."""
    running(life)
    life.stop(0.0, QueryError("closed"))
    assert life.stop(0.0) == [Send(Stop(0.0))]
    assert life.received(Ended(None)) == [Over(QueryError("closed"))]
    assert life.stop(1.0) == []


def test_a_lost_jvm_is_why_its_process_ends(life: Lifecycle) -> None:
    """The process is made to end at once; what has killed it then is not the cause."""
    assert running(life).received(Lost("the JVM was killed by signal 9")) == [Kill()]
    (over,) = life.exited(Exit(-9))
    assert isinstance(over, Over)
    assert "the JVM of this task was killed by signal 9" in str(over.error)


def test_silence_is_a_reason_to_kill_it_and_the_cause(life: Lifecycle) -> None:
    """Any word is a sign of life."""
    running(life)
    assert [life.look(), life.look()] == [[], []]
    life.received(News())
    assert [life.look(), life.look(), life.look()] == [[], [], [Kill()]]
    (over,) = life.exited(Exit(-9))
    assert over == Over(
        QueryError("the process of this task has not answered for 3 s and was killed; see --jvm-timeout-ms")
    )
    assert life.look() == []


def test_before_its_first_word_nothing_is_expected(life: Lifecycle) -> None:
    """It imports Spark; how long a start may take is another setting."""
    assert [life.look() for _ in range(10)] == [[]] * 10
