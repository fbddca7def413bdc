from __future__ import annotations

import pytest

from definition.intervals import trigger_interval_fault, trigger_interval_ms
from tests.unit.definition.interval_corpus import ACCEPTED, REFUSED


@pytest.mark.parametrize("interval", ACCEPTED)
def test_what_spark_takes_as_a_trigger_is_accepted(interval: str) -> None:
    """Units, signs, decimals and spaces as Spark has them."""
    assert trigger_interval_fault(interval) is None


@pytest.mark.parametrize("interval", REFUSED)
def test_what_spark_would_refuse_is_refused(interval: str) -> None:
    """It would fail on a worker otherwise, long after the task was created."""
    assert trigger_interval_fault(interval)


@pytest.mark.parametrize(
    ("interval", "fault"),
    [
        ("soon", 'is no interval; write one as "1 second", "500 milliseconds" or "1 minute 30 seconds"'),
        ("1 month", "must not have years or months, whose length varies"),
        ("-1 second", "must not be negative"),
        ("400000 years -4800000 months 106751992 days", "is too long"),
    ],
)
def test_the_fault_says_what_to_change(interval: str, fault: str) -> None:
    """One line each."""
    assert trigger_interval_fault(interval) == fault


@pytest.mark.parametrize(
    ("interval", "ms"),
    [("1 minute 30 seconds", 90_000), ("2.5 seconds", 2500), ("500 milliseconds", 500), ("0 seconds", None)],
)
def test_how_long_an_interval_is(interval: str, ms: int | None) -> None:
    """In milliseconds; one of no time is none, as with Spark, and neither is what is no interval."""
    assert trigger_interval_ms(interval) == ms
    assert trigger_interval_ms("") is None
