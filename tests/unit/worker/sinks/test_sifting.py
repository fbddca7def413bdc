"""Rows that violate expectations are counted or put aside, and do not get to the sink."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from worker.left_out import LeftOut
from worker.sinks.aside import Limits
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark
from worker.sinks.parts import Staged as Parted
from worker.sinks.sifting import Sieve, Sifting, SiftingTake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.sinks.parts import Rows

ROWS: Rows = [("a", 0), ("b", 1), ("c", 3), ("d", 0), ("e", 2), ("f", 2)]
"""Each with its mask; the first expectation is violated by two rows, the second by three."""
DROPPING = Sifting(("early", "known"))
BOTH = LeftOut(dropped=4, reasons={"early": 2, "known": 3})
ASIDE = Sifting(("early", "known"), 0b10, ("x > 1", "x IS NOT NULL"), 10, ("name",), ("string",))
"""Rows that are not `early` are dropped, those that are not `known` are put aside."""


@dataclass
class Staged:
    """A stage that keeps rows in a list, and may have no room for more than some."""

    most: int = 100
    rows: Rows = field(default_factory=list)
    here_only: bool = True

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> Parted:
        del partition, attempt
        for chunk in chunks:
            self.rows += chunk
            if len(self.rows) > self.most:
                raise SinkError("full")
        return Parted(len(self.rows))


def test_a_small_batch_is_sifted_at_the_driver() -> None:
    """A row that violates two counts for both, and is left out once."""
    sieve = Sieve(DROPPING)
    assert list(sieve.sifted(ROWS)) == [("a",), ("d",)]
    assert sieve.left_out == BOTH
    assert Sieve(DROPPING).left_out == LeftOut()


def test_a_row_that_the_sink_would_refuse_is_put_aside_as_refused() -> None:
    """By whatever number of its conditions, it counts once; another quarantine's rows count as before."""
    refusing = Sifting(
        ("known", "positive", "small"), 0b111, ("a", "b", "c"), 10, ("name",), ("string",), 0b110
    )
    sieve = Sieve(refusing)
    rows = [("a", 0), ("b", 0b001), ("c", 0b010), ("d", 0b110)]
    assert list(sieve.sifted(rows)) == [("a",)]
    assert sieve.left_out == LeftOut(quarantined=3, reasons={"known": 1, "refused": 2})
    assert [(row.reason, row.names, row.error, row.counted_as) for row in sieve.kept] == [
        ("violation", ("known",), "known is violated: a", ("known",)),
        ("refused", ("positive",), "the sink refuses it: positive is violated: b", ("refused",)),
        ("refused", ("positive", "small"), "the sink refuses it: positive is violated: b", ("refused",)),
    ]


def test_a_row_that_is_put_aside_says_what_it_violates() -> None:
    """With itself as JSON; one that violates another expectation as well is put aside, and not dropped."""
    sieve = Sieve(ASIDE)
    assert list(sieve.sifted(ROWS)) == [("a",), ("d",)]
    assert sieve.left_out == LeftOut(dropped=1, quarantined=3, reasons={"early": 2, "known": 3})
    assert [(row.names, json.loads(row.raw), row.reason, row.form) for row in sieve.kept] == [
        (("early", "known"), {"name": "c"}, "violation", "row"),
        (("known",), {"name": "e"}, "violation", "row"),
        (("known",), {"name": "f"}, "violation", "row"),
    ]
    assert sieve.kept[1].error == "known is violated: x IS NOT NULL"


@pytest.mark.parametrize(("number", "kept"), [(50, 50), (51, 3), (1000, 3)])
def test_of_more_rows_than_may_be_put_aside_those_of_the_cause_are_kept(number: int, kept: int) -> None:
    """All of them are counted, so that the batch fails; each partition may have as many."""
    sieve = Sieve(Sifting(("a",), 1, ("x",), 50, ("n",), ("integer",)))
    assert list(sieve.sifted([(n, 1) for n in range(number)])) == []
    assert (len(sieve.kept), sieve.left_out.quarantined) == (kept, number)


def test_of_more_bytes_than_may_be_put_aside_no_more_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """In how few rows they ever are; the batch fails for them though the driver has not seen them."""
    monkeypatch.setattr("worker.sinks.sifting.MOST_BYTES", 1000)
    sieve = Sieve(Sifting(("a",), 1, ("x",), 50, ("n",), ("string",)))
    assert list(sieve.sifted([("x" * 100, 1)] * 40)) == []
    assert (len(sieve.kept), sieve.left_out.quarantined) == (3, 40)
    with pytest.raises(SinkError, match=r"40 of 40 rows would be put aside, which have more than .* bytes"):
        Limits(50, 1.0).require(sieve.kept, 40, 40, Mark("c", 0))


@pytest.mark.parametrize("inline", [0, 1, 2, 100])
def test_a_partition_is_sifted_where_it_is_computed(inline: int) -> None:
    """Whether its rows come back inline or are staged: two good ones in both cases."""
    stage = Staged()
    part = SiftingTake(stage, inline, DROPPING)(0, 7, iter(ROWS))
    assert (part.rows or stage.rows) == [("a",), ("d",)]
    assert (part.rows is None) == (inline < 2)
    assert (part.attempt, part.count, part.left_out) == (7, 2, BOTH)


def test_a_partition_without_a_good_row_is_empty() -> None:
    """And is counted."""
    part = SiftingTake(Staged(), 10, DROPPING)(0, 7, iter(ROWS[1:3]))
    assert (part.rows, part.count) == ([], 0)
    assert part.left_out == LeftOut(dropped=2, reasons={"early": 2, "known": 1})


def test_a_partition_that_cannot_be_staged_is_computed_to_its_end() -> None:
    """A query with state commits it at the end only."""
    rows = iter(ROWS)
    part = SiftingTake(Staged(most=0), 0, DROPPING)(0, 7, rows)
    assert part.fault == "full"
    assert list(rows) == []


def test_it_travels_to_executors() -> None:
    """And takes there what it would take here, with the rows that are put aside."""
    take = pickle.loads(pickle.dumps(SiftingTake(Staged(), 100, ASIDE)))
    part = pickle.loads(pickle.dumps(take(0, 7, iter(ROWS))))
    assert part.left_out.quarantined == len(part.aside) == 3


def test_sixty_expectations_have_a_bit_each() -> None:
    """The highest one, too."""
    sieve = Sieve(Sifting(tuple(f"e{at}" for at in range(60))))
    assert list(sieve.sifted([(1, 1 << 59), (2, 0)])) == [(2,)]
    assert sieve.left_out == LeftOut(dropped=1, reasons={"e59": 1})
