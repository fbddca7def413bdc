from __future__ import annotations

import pytest

from manager.outbox import delivery
from manager.outbox.delivery import Delivery, Fetch, Pause, Post, Step
from protocol.messages.events import Event


def event(number: int) -> Event:
    return Event(id=number, at_ms=number, type="task.failed")


def events(first: int, last: int) -> list[Event]:
    return [event(number) for number in range(first, last + 1)]


def pauses(count: int, chance: float = 0.5, retry_after_ms: int = 0) -> list[int]:
    way = Delivery(0, lambda: chance)
    way.fetched([event(1)])
    steps = [way.refused(0, retry_after_ms) for _ in range(count)]
    return [step.then.ms for step in steps if isinstance(step.then, Pause)]


def test_events_go_one_by_one_and_then_it_looks_for_more() -> None:
    """The next only when the one before was taken; the position is stored with the last one."""
    way = Delivery(4, lambda: 0.5)
    assert way.begin() == Step(None, Fetch(4))
    assert way.fetched(events(5, 7)) == Step(None, Post(event(5)))
    assert way.taken(now=10) == Step(None, Post(event(6)))
    assert way.taken(now=20) == Step(None, Post(event(7)))
    assert way.taken(now=30) == Step(7, Fetch(7))


def test_nothing_new_is_no_reason_to_store_anything() -> None:
    """It looks again from the same place."""
    way = Delivery(4, lambda: 0.5)
    assert way.fetched([]) == Step(None, Fetch(4))


def test_an_event_that_is_not_taken_is_sent_again_after_a_pause() -> None:
    """Nothing overtakes it, and the position before it is stored."""
    way = Delivery(4, lambda: 0.5)
    way.fetched(events(5, 7))
    way.taken(now=10)
    assert way.refused(now=20) == Step(5, Pause(1000))
    assert way.paused() == Step(None, Post(event(6)))
    assert way.refused(now=30) == Step(None, Pause(2000))
    assert (way.position, way.failures) == (5, 2)


def test_pauses_double_up_to_five_minutes_and_scatter() -> None:
    """By a fifth to either side, so that what failed together does not come back together."""
    assert pauses(11) == [1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000]
    assert pauses(100_000)[-1] == 300_000
    assert pauses(2, chance=0) == [800, 1600]
    assert pauses(2, chance=1) == [1200, 2400]


def test_a_receiver_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    """`Retry-After`, up to the longest pause."""
    assert pauses(2, retry_after_ms=1500) == [1500, 2000]
    assert pauses(1, retry_after_ms=10**12) == [300_000]


def test_pauses_are_short_again_after_a_success() -> None:
    """What counts is failures in a row."""
    way = Delivery(0, lambda: 0.5)
    way.fetched(events(1, 2))
    way.refused(now=0)
    way.refused(now=0)
    way.taken(now=0)
    assert way.failures == 0
    assert way.refused(now=1).then == Pause(1000)


def test_the_position_is_stored_now_and_then_while_much_is_told() -> None:
    """What a crash makes it repeat is bounded in time."""
    way = Delivery(0, lambda: 0.5)
    way.fetched(events(1, 100))
    saved = [way.taken(now=delivery.SAVE_EVERY_MS + 400 * n).save for n in range(7)]
    assert saved == [1, None, None, 4, None, None, 7]


@pytest.mark.parametrize("refusals", [0, 1, 3])
def test_whenever_it_is_killed_what_was_not_taken_is_sent_again(refusals: int) -> None:
    """A stored position is never ahead of what was taken."""
    way = Delivery(0, lambda: 0.5)
    way.fetched(events(1, 3))
    for taken in (1, 2, 3):
        steps = [way.refused(taken * 1000) for _ in range(refusals)] + [way.taken(taken * 1000 + 999)]
        assert all(step.save is None or step.save <= taken for step in steps)
    assert steps[-1] == Step(3, Fetch(3))


def test_what_is_not_wanted_is_passed_over_and_not_stored_each_time() -> None:
    """It moves on with it; the position is stored once a minute, as much happens that few are told of."""
    way = Delivery(0, lambda: 0.5, wants=lambda event: event.id == 3)
    assert way.fetched(events(1, 2), now=60_000) == Step(2, Fetch(2))
    assert way.fetched(events(3, 5), now=60_001) == Step(None, Post(event(3)))
    assert way.taken(now=60_002) == Step(5, Fetch(5))
    assert way.fetched(events(6, 9), now=120_001) == Step(None, Fetch(9))
    assert way.fetched(events(10, 11), now=120_002) == Step(11, Fetch(11))
    assert way.fetched([], now=500_000) == Step(None, Fetch(11))


def test_what_will_never_be_taken_is_given_up_and_the_next_one_comes() -> None:
    """After it was said three times in a row; anything else in between, and it is tried on."""
    way = Delivery(0, lambda: 0.5)
    way.fetched(events(1, 2))
    answers = [way.refused(0, is_final=final) for final in (True, True, False, True, True)]
    assert all(isinstance(step.then, Pause) for step in answers)
    assert way.refused(now=1000, is_final=True) == Step(1, Post(event(2)))
    assert (way.position, way.failures) == (1, 0)


def test_a_subscriber_may_be_tried_more_often() -> None:
    """Whoever waits for alarms does not wait five minutes after an hour's outage."""
    way = Delivery(0, lambda: 0.5, longest_pause_ms=60_000)
    way.fetched([event(1)])
    assert [way.refused(0).then for _ in range(20)][-1] == Pause(60_000)
