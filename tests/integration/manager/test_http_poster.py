"""What is made of the answers of a real system over HTTP."""

from __future__ import annotations

import pytest
from yarl import URL

from manager.outbox.http_poster import HttpPoster
from manager.outbox.outcomes import Refusal
from tests.integration.manager.receiver import Receiver


@pytest.mark.parametrize(
    ("told", "wanted_ms"),
    [
        ("120", 120_000),
        ("9" * 5000, 999_999_999_000),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0),
        ("-5", 0),
        ("1.5", 0),
        ("\u0661\u0662", 0),
        ("", 0),
    ],
)
async def test_whatever_is_said_of_when_to_come_again_is_a_refusal(told: str, wanted_ms: int) -> None:
    """Seconds are heeded; Python itself refuses to read a number of thousands of digits."""
    receiver = Receiver(always=503, headers={"Retry-After": told})
    await receiver.open()
    poster = HttpPoster()
    try:
        assert await poster.post(URL(receiver.url), b"{}", {}) == Refusal("HTTP 503", wanted_ms)
    finally:
        await poster.close()
        await receiver.close()
