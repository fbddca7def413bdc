"""Asking a silent query where it is, beside whatever else is asked of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from worker.query_engine import Stall
from worker.spark.stall_watch import StallWatch
from worker.spark.stalls import PATIENCE_S, Stalls
from worker.spark.whereabouts import Whereabouts


class Threads:
    """Those that are begun, until the test lets them be through."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._work: list[tuple[Future[Any], Any]] = []

    def begin(self, name: str, function: Any) -> Future[Any]:
        """In place of `in_thread`."""
        self.names.append(name)
        self._work.append((Future(), function))
        return self._work[-1][0]

    def finish(self) -> None:
        """All that were begun."""
        for future, function in self._work:
            try:
                future.set_result(function())
            except OSError as error:
                future.set_exception(error)
        self._work.clear()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    made = Threads()
    monkeypatch.setattr("worker.spark.stalls.in_thread", made.begin)
    return made


def stalls(where: Any = lambda: Whereabouts("here")) -> Stalls:
    """Of a query that is silent for 11 s at its second look."""
    made = Stalls("t", StallWatch(10), where)
    for now in (0, 11):
        made.look(is_busy=True, has_input=False, now=now)
    return made


def test_it_is_asked_in_a_thread_of_its_own(threads: Threads) -> None:
    """What comes of it is told at the next look; nobody waits for it."""
    silent = stalls()
    assert threads.names == ["spark-where t"]
    assert silent.stall is None
    threads.finish()
    silent.look(is_busy=True, has_input=False, now=12)
    assert silent.stall == Stall(11, "here")


def test_an_answer_that_takes_long_is_not_waited_for(threads: Threads) -> None:
    """The silence is told without it, as nobody's fault so far; when it comes, it is told, too."""
    silent = stalls()
    silent.look(is_busy=True, has_input=False, now=11 + PATIENCE_S)
    assert silent.stall == Stall(11, held_up_s=11)
    threads.finish()
    silent.look(is_busy=True, has_input=False, now=17)
    assert silent.stall == Stall(16, "here")
    assert len(threads.names) == 1


def test_while_no_answer_comes_the_silence_grows(threads: Threads) -> None:
    """It is told again when another question is due, and none is asked beside the one under way."""
    silent = stalls()
    told = []
    for now in range(12, 72):
        silent.look(is_busy=True, has_input=False, now=now)
        if silent.stall is not None and silent.stall not in told:
            told.append(silent.stall)
    assert [each.silent_s for each in told] == [15, 22, 33, 44, 56, 71]
    assert {each.own_s for each in told} == {0}
    assert len(threads.names) == 1


def test_an_answer_that_comes_after_a_batch_is_out_of_date(threads: Threads) -> None:
    """The query is not silent any more."""
    silent = stalls()
    silent.heard()
    threads.finish()
    silent.look(is_busy=True, has_input=False, now=12)
    assert silent.stall is None


def test_where_nobody_can_tell_only_the_silence_is_told(threads: Threads) -> None:
    """As behind Spark Connect."""
    silent = stalls(lambda: None)
    threads.finish()
    silent.look(is_busy=True, has_input=False, now=12)
    assert silent.stall == Stall(11)


def test_a_question_that_fails_is_one_without_an_answer(threads: Threads) -> None:
    """It says nothing of who is at fault, and ends nobody."""

    def raises() -> Whereabouts | None:
        raise OSError("gone")

    silent = stalls(raises)
    threads.finish()
    silent.look(is_busy=True, has_input=False, now=12)
    assert silent.stall is not None
    assert (silent.stall.silent_s, silent.stall.own_s) == (11, 0)
