"""When a query counts as silent, on a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.looks import LONGEST_LOOK_S
from worker.query_engine import Stall
from worker.spark.stall_watch import AGAIN_S, LEAST_PAUSE_S, SHARE, StallWatch
from worker.spark.whereabouts import Whereabouts

EVERY_S = 5


class Silent:
    """A query that is looked at every few seconds, and that says at which of them it is to be asked."""

    def __init__(self, limit_s: float, interval_s: float = 0.0) -> None:
        self.watch = StallWatch(limit_s, interval_s)
        self.now = 0.0
        self.asked: list[float] = []

    def wait(self, seconds: float, *, is_busy: bool = False, has_input: bool = False) -> None:
        """Look at it for so long; each question has an answer at once."""
        until = self.now + seconds
        while self.now < until:
            if self.watch.look(is_busy=is_busy, has_input=has_input, now=self.now):
                self.asked.append(self.now)
                self.watch.found(Whereabouts("it is here"))
            self.now += EVERY_S


def test_a_batch_that_does_not_end_is_found_within_one_look() -> None:
    """Also the first one of a query; then it is asked again, at pauses that grow with the silence."""
    query = Silent(300)
    query.wait(4000, is_busy=True)
    first, second, *rest = query.asked
    assert 300 < first <= 300 + EVERY_S
    assert first + AGAIN_S <= second <= first + max(AGAIN_S, SHARE * first) + EVERY_S
    assert 4 <= len(rest) <= 12
    assert query.watch.stall == Stall(query.asked[-1], "it is here")


def test_a_short_limit_is_looked_after_as_often() -> None:
    """What a query is at when a second has passed may be nothing to keep for a minute."""
    query = Silent(10)
    query.wait(60, is_busy=True)
    assert query.asked == [15, 30, 45]


def test_rows_that_wait_without_any_batch_are_found() -> None:
    """The query rests, though its source had more when the last batch was planned."""
    query = Silent(60)
    query.wait(100, has_input=True)
    assert query.asked == [65]


def test_rest_between_two_triggers_is_none() -> None:
    """A query that has rows to read waits for its interval in good order, and no longer than that."""
    query = Silent(60, interval_s=600)
    query.wait(660, has_input=True)
    assert query.asked == []
    query.wait(20, has_input=True)
    assert query.asked == [665]


@pytest.mark.parametrize("sign", ["rest", "batch"])
def test_a_sign_of_life_ends_the_silence(sign: str) -> None:
    """What was told of it is taken back, and it begins anew."""
    query = Silent(60)
    query.wait(70, is_busy=True)
    told = [query.watch.stall]
    if sign == "batch":
        query.watch.heard()
    else:
        query.wait(EVERY_S)
    assert [*told, query.watch.stall] == [Stall(65, "it is here"), None]
    query.wait(60, is_busy=True)
    assert len(query.asked) == 1
    query.wait(20, is_busy=True)
    assert len(query.asked) == 2


def test_a_worker_that_was_frozen_has_not_seen_silence() -> None:
    """The hour in which nobody looked counts as one look."""
    watch = StallWatch(300)
    watch.look(is_busy=True, has_input=False, now=0)
    assert not watch.look(is_busy=True, has_input=False, now=3600)
    watch.found(None)
    assert watch.stall == Stall(LONGEST_LOOK_S)


class HeldUp(Silent):
    """One that others hold up until a given time; `acts_from` is when its own silence passed its limit."""

    def __init__(self, limit_s: float, until: float) -> None:
        super().__init__(limit_s)
        self.acts_from: float | None = None
        self._limit_s = limit_s
        self._until = until

    def wait_s(self, seconds: int) -> None:
        """Look once a second; it does a batch all the time."""
        for now in range(seconds):
            if self.watch.look(is_busy=True, has_input=False, now=now):
                self.asked.append(now)
                self.watch.found(Whereabouts("it is here", now < self._until))
            stall = self.watch.stall
            if self.acts_from is None and stall is not None and stall.own_s > self._limit_s:
                self.acts_from = now


def test_the_silence_of_one_that_others_hold_up_is_told_and_is_not_its_own() -> None:
    """For as long as they do; each limit's time it is asked whether they still do."""
    query = HeldUp(60, until=1000)
    query.wait_s(1000)
    assert query.watch.stall is not None
    assert query.watch.stall.silent_s > 800
    assert query.watch.stall.own_s == 0
    assert query.acts_from is None
    assert len(query.asked) == 16


@pytest.mark.parametrize("limit_s", [20, 60, 900])
def test_the_silence_after_that_counts_from_when_they_were_last_seen_to(limit_s: int) -> None:
    """What it computes since then has as long as any batch, and is found out as soon."""
    query = HeldUp(limit_s, until=3 * limit_s)
    query.wait_s(10 * limit_s)
    seen = [at for at in query.asked if at < 3 * limit_s]
    assert query.acts_from == seen[-1] + limit_s + 1


def test_what_others_held_up_is_forgotten_with_a_batch() -> None:
    """The next silence is its own from the beginning."""
    query = HeldUp(60, until=70)
    query.wait_s(70)
    query.watch.heard()
    query.watch.look(is_busy=True, has_input=False, now=70)
    query.watch.found(Whereabouts("it is here"))
    assert query.watch.stall == Stall(1, "it is here")


def test_a_limit_that_each_batch_passes_asks_every_ten_seconds() -> None:
    """However short it is: a hundred calls to Java at each look would be a load of their own."""
    watch, asked = StallWatch(0.5), []
    for now in range(100):
        if watch.look(is_busy=True, has_input=True, now=now):
            asked.append(now)
        if now % 2 == 0:
            watch.heard()
    assert asked == list(range(1, 100, int(LEAST_PAUSE_S)))


def test_what_is_said_of_it_is_one_line() -> None:
    """With what it is at, where that is known."""
    assert str(Stall(1234.5)) == "no batch has finished for 1,234 s though there is work"
    assert str(Stall(301, "it waits")) == "no batch has finished for 301 s though there is work: it waits"


@given(
    st.lists(st.tuples(st.sampled_from(["rest", "busy", "input", "batch"]), st.floats(0, 60)), max_size=60)
)
def test_a_query_is_asked_only_after_a_silence_as_long_as_its_limit(looks: list[tuple[str, float]]) -> None:
    """Whatever comes in whatever order: never sooner."""
    watch, now, quiet_since = StallWatch(120), 0.0, 0.0
    for sign, pause in looks:
        now += pause
        if sign in {"rest", "batch"}:
            quiet_since = now
        if sign == "batch":
            watch.heard()
            continue
        asked = watch.look(is_busy=sign == "busy", has_input=sign == "input", now=now)
        assert not asked or now - quiet_since > 120
