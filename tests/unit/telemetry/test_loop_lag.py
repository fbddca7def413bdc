from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from telemetry.loop_lag import LOOP_LAG, PERIOD_S, LoopLag
from telemetry.metrics import Instruments

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Alarm:
    """The event loop's, rung by the test."""

    def __init__(self) -> None:
        self.rings: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, ring: Callable[[], None]) -> Any:
        self.rings.append((delay_s, ring))

    def ring(self) -> None:
        self.rings.pop(0)[1]()


def test_what_comes_late_is_observed_as_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look is on time, the second a second late; it goes on looking."""
    alarm, now = Alarm(), 100.0
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: alarm)
    instruments = Instruments()
    lag = LoopLag(instruments.histogram(LOOP_LAG), lambda: now)
    lag.start()
    now += PERIOD_S
    alarm.ring()
    now += PERIOD_S + 1.0
    alarm.ring()
    value = instruments.registry.get_sample_value
    assert value("sparkherd_event_loop_lag_seconds_sum") == 1.0
    assert value("sparkherd_event_loop_lag_seconds_count") == 2
    assert [delay_s for delay_s, _ in alarm.rings] == [PERIOD_S]
    assert [lag.worst(), lag.worst()] == [1.0, 0.0], "since it was asked before"
