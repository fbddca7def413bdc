"""Rows that are put aside: how many may be, and what anybody may see of them."""

from __future__ import annotations

import pytest

from worker.left_out import LeftOut
from worker.sinks.aside import RATIO_FROM, Aside, Limits, counted
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark
from worker.sinks.parts import too_many

MARK = Mark("checkpoint", 7)
BROKEN = Aside(
    "unreadable",
    ("json",),
    "cannot be taken apart as json",
    "kafka",
    b"{",
    {"topic": "t", "partition": 1, "offset": 9},
)
EARLY = Aside("violation", ("early", "known"), "early is violated: x > 1", "row", b'{"name":"Ada 1"}')


def test_rows_are_counted_by_what_they_violate_or_else_by_why() -> None:
    """Each once as put aside."""
    assert counted([BROKEN, EARLY, EARLY]) == LeftOut(
        quarantined=3, reasons={"unreadable": 1, "early": 2, "known": 2}
    )


def test_what_is_left_out_of_two_batches_is_added() -> None:
    """By reason, too."""
    some, more = LeftOut(1, 2, {"a": 3}), LeftOut(10, 20, {"a": 1, "b": 2})
    assert some + more == LeftOut(11, 22, {"a": 4, "b": 2})
    assert not LeftOut()
    assert LeftOut(dropped=1)


def test_a_batch_with_too_many_is_refused_with_the_error_and_three_rows() -> None:
    """Their places, where those are known."""
    rows = [EARLY] + [BROKEN] * 5
    with pytest.raises(SinkError) as refused:
        Limits(5, 1.0).require(rows, 6, 6, MARK)
    assert str(refused.value) == (
        "batch 7: 6 of 6 rows would be put aside, more than quarantine.max_quarantined_per_batch (5) allows:"
        " cannot be taken apart as json; such as topic t, partition 1, offset 9;"
        " topic t, partition 1, offset 9; topic t, partition 1, offset 9"
    )


def test_the_values_of_a_row_are_in_no_cause() -> None:
    """Only its shape."""
    with pytest.raises(SinkError, match=r'such as \{"name": "xxx 9"\}$'):
        Limits(0, 1.0).require([EARLY], 1, 1, MARK)


@pytest.mark.parametrize(("number", "is_refused"), [(RATIO_FROM, False), (RATIO_FROM + 1, True)])
def test_the_ratio_holds_from_a_hundred_rows_on(number: int, is_refused: bool) -> None:  # noqa: FBT001 - a column
    """One bad row of a batch of three is no sign that something else is wrong."""
    limits = Limits(10_000, 0.1)
    if is_refused:
        with pytest.raises(SinkError, match=r"max_quarantined_ratio \(0.1\)"):
            limits.require([BROKEN] * number, number, 200, MARK)
    else:
        limits.require([BROKEN] * number, number, 200, MARK)


def test_as_many_as_may_be_are_put_aside() -> None:
    """The bounds are included."""
    Limits(5, 0.1).require([BROKEN] * 5, 5, 5, MARK)
    Limits(1000, 0.5).require([BROKEN] * 500, 500, 1000, MARK)


@pytest.mark.parametrize(
    ("limits", "number", "total", "left"),
    [
        (Limits(5, 1.0), 2, 1000, 3),
        (Limits(5, 1.0), 6, 1000, 0),
        (Limits(10_000, 0.1), 20, 5000, 480),
        (Limits(10_000, 0.1), 20, 50, RATIO_FROM - 20),
        (Limits(10_000, 0.07), 0, 10_001, 700),
    ],
)
def test_what_may_still_be_put_aside_is_what_the_bounds_leave(
    limits: Limits, number: int, total: int, left: int
) -> None:
    """Nobody looks for more refused rows than the batch would get through with."""
    assert limits.left(number, total) == left
    if left:
        limits.require([BROKEN] * (number + left), number + left, total, MARK)
        with pytest.raises(SinkError):
            limits.require([BROKEN] * (number + left + 1), number + left + 1, total, MARK)


def test_more_bytes_than_a_driver_bears_are_refused() -> None:
    """However few rows have them."""
    large = BROKEN._replace(raw=b"x" * 2**27)
    with pytest.raises(SinkError, match="bytes"):
        Limits(5, 1.0).require([large] * 3, 3, 3, MARK)


def test_keys_and_headers_are_bytes_too() -> None:
    """They pass through the driver with the value."""
    small = BROKEN._replace(origin={**BROKEN.origin, "headers": "x" * 1000})
    assert small.size > 1000
    large = BROKEN._replace(origin={**BROKEN.origin, "key": "x" * 2**27})
    with pytest.raises(SinkError, match="bytes"):
        Limits(5, 1.0).require([large] * 3, 3, 3, MARK)
    assert too_many([large] * 3, most=5)
    assert not too_many([small] * 3, most=5)


def test_what_is_wrong_with_a_row_is_bytes_too() -> None:
    """It passes through the driver with the row."""
    assert BROKEN._replace(error="x" * 1000).size == BROKEN._replace(error="").size + 1000
