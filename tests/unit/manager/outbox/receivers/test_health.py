from __future__ import annotations

from manager.outbox.receivers.health import (
    AWAY_AFTER_MS,
    after_delivery,
    after_refusal,
)
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState

NEW = ReceiverHealth()


def test_a_receiver_delivers_from_the_first_message_that_it_takes() -> None:
    """Later ones change nothing, so nothing is stored for them."""
    once = after_delivery(NEW, 5)
    assert once == ReceiverHealth(ReceiverState.DELIVERING, 5)
    assert after_delivery(once, 9) is once


def test_it_is_away_when_it_has_taken_nothing_for_five_minutes() -> None:
    """Counted from the first message that it did not take."""
    failing = after_refusal(after_delivery(NEW, 5), 10, "HTTP 503")
    assert failing == ReceiverHealth(ReceiverState.FAILING, 10, "HTTP 503")
    still = after_refusal(failing, 9 + AWAY_AFTER_MS, "HTTP 500")
    assert still == ReceiverHealth(ReceiverState.FAILING, 10, "HTTP 500")
    away = after_refusal(still, 10 + AWAY_AFTER_MS, "HTTP 503")
    assert away == ReceiverHealth(ReceiverState.AWAY, 10, "HTTP 503")
    assert after_refusal(away, 11, "HTTP 503") == away  # a clock that was set back makes it no less so


def test_it_is_back_with_the_first_message_that_it_takes() -> None:
    """The last error stays for whoever asks; the next failure counts anew."""
    back = after_delivery(ReceiverHealth(ReceiverState.AWAY, 10, "HTTP 503"), 20)
    assert back == ReceiverHealth(ReceiverState.DELIVERING, 20, "HTTP 503")
    assert after_refusal(back, AWAY_AFTER_MS * 2, "x" * 1000).state is ReceiverState.FAILING
    assert len(after_refusal(back, 30, "x" * 1000).last_error or "") == 300
