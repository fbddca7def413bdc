"""Every interleaving of two owners of one Delta table, over claim, write, look and mark.

The other tests here are of one owner at a time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from greenlet import greenlet

from definition.sinks.delta import DeltaOptions
from tests.unit.worker.sinks.delta_model import (
    ConcurrentTransactionError,
    ModelBatch,
    ModelTable,
    Stored,
    interleaved,
    remade,
    step,
)
from worker.sinks.base import Field
from worker.sinks.delta.sink import DeltaSink
from worker.sinks.errors import FencedError, SchemaError, SinkError
from worker.sinks.fence import Mark, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKPOINT = "c"
BATCHES = 2


def sink_of(
    stored: Stored, token: int, resets: int = 0, *, checked: bool = True, **options: Any
) -> DeltaSink:
    owner = Owner("g", "t", token, resets)
    return DeltaSink(ModelTable(stored, checked=checked), owner, DeltaOptions(path="/model", **options))


class Checkpoint:
    """What both owners share beside the table: Spark's log of the batches that are done."""

    def __init__(self) -> None:
        self.done: list[int] = []

    @property
    def next(self) -> int:
        """Spark repeats the last one if it is not known to be done."""
        return max(self.done, default=-1) + 1


def owner(stored: Stored, checkpoint: Checkpoint, token: int, **how: Any) -> Callable[[], None]:
    """One that claims, does all batches from where the checkpoint is then, and ends when it is refused."""

    def run() -> None:
        try:
            sink = sink_of(stored, token, **how)
            sink.claim()
            step()
            for batch_id in range(checkpoint.next, BATCHES):
                sink.write(batch(batch_id, rows=(f"row{batch_id}",)))
                checkpoint.done.append(batch_id)
        except (SinkError, ConcurrentTransactionError):
            pass

    return run


def orders(first: int, second: int) -> Iterator[tuple[int, ...]]:
    """Each way in which `first` steps of one and `second` of another can follow each other."""
    for at in combinations(range(first + second), first):
        yield tuple(0 if step in at else 1 for step in range(first + second))


def outcome(order: tuple[int, ...], *, begun: bool, checked: bool = True) -> tuple[Stored, Checkpoint]:
    """What is in the table and in the checkpoint when both have ended, and the task has gone to a third.

    With `begun` the first owner has claimed and written a batch before the second one comes.
    """
    stored, checkpoint = Stored(), Checkpoint()
    both = [owner(stored, checkpoint, token, checked=checked) for token in (1, 2)]
    first = greenlet(both[0])
    while begun and not checkpoint.done:
        first.switch()
    second = greenlet(both[1])
    interleaved(order, first, second)
    missing = [batch_id for batch_id in checkpoint.done if f"row{batch_id}" not in stored.rows]
    assert missing == [], "marked as done, and not in the table"
    interleaved((), greenlet(owner(stored, checkpoint, 3, checked=checked)))
    return stored, checkpoint


@pytest.mark.parametrize(("begun", "first", "second"), [(False, 8, 7), (True, 8, 8)])
def test_nothing_is_lost_or_twice_in_any_order(*, begun: bool, first: int, second: int) -> None:
    """Whatever two owners do between each other's steps; and what is marked as done is in the table."""
    for order in orders(first, second):
        stored, checkpoint = outcome(order, begun=begun)
        assert sorted(stored.rows) == ["row0", "row1"], order
        assert set(checkpoint.done) == {0, 1}, order


def test_without_the_comparison_in_the_commit_a_zombie_writes_twice() -> None:
    """So the orders above do have those in them that matter."""
    found = [outcome(order, begun=True, checked=False)[0].rows for order in orders(4, 7)]
    assert any(len(rows) > len(set(rows)) for rows in found)


def test_a_write_that_was_passed_over_is_never_taken_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the look after each write tells it."""
    monkeypatch.setattr(DeltaSink, "_require_ours", lambda sink, _: sink._table.look(0))
    with pytest.raises(AssertionError, match="marked as done, and not in the table"):
        [outcome(order, begun=True) for order in orders(6, 6)]


def batch(
    batch_id: int, plan: str = "p", rows: tuple[str, ...] = ("r",), checkpoint: str = CHECKPOINT
) -> Any:
    return ModelBatch(Mark(checkpoint, batch_id, f"{plan}{batch_id}"), rows)


def test_a_batch_that_is_there_is_computed_and_passed_over() -> None:
    """By another owner, too, who finds in the table what it was."""
    stored = Stored()
    first = sink_of(stored, 1)
    assert first.claim().last is None
    assert first.write(batch(0)).total == 1
    again = sink_of(stored, 2)
    assert again.claim().last == Mark(CHECKPOINT, 0, "p0")
    repeated = batch(0)
    assert again.write(repeated).duplicate
    assert repeated.was_discarded
    assert stored.rows == ["r"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (batch(2), "batches between them are missing"),
        (batch(0, plan="other"), "planned"),
        (batch(1, checkpoint="d"), "runs on checkpoint d"),
    ],
)
def test_what_does_not_follow_is_refused(wrong: Any, said: str) -> None:
    """A gap, an older copy of the checkpoint, another checkpoint."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink.write(batch(0))
    with pytest.raises(SinkError, match=said):
        sink.write(wrong)
    assert stored.rows == ["r"]


def test_a_lower_token_is_refused_at_its_claim() -> None:
    stored = Stored()
    sink_of(stored, 2).claim()
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        sink_of(stored, 1).claim()


def test_a_reset_begins_anew_in_another_checkpoint() -> None:
    """And keeps the owner before it out, though its batches have higher numbers."""
    stored = Stored()
    before = sink_of(stored, 1)
    before.claim()
    before.write(batch(0))
    before.write(batch(1))
    anew = sink_of(stored, 2, resets=1)
    assert anew.claim().last is None
    with pytest.raises(SinkError):
        before.write(batch(2))
    anew.write(batch(0, checkpoint="d"))
    assert sink_of(stored, 3, resets=1).claim().last == Mark("d", 0, "p0")
    assert len(stored.rows) == 3


def test_what_stands_beside_the_number_may_expire() -> None:
    """The batch and its checkpoint stay known; what was planned does not."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink.write(batch(0))
    stored.note = None
    assert sink_of(stored, 2).claim().last == Mark(CHECKPOINT, 0, None)


def test_a_checkpoint_that_was_given_up_before_its_first_batch_does_not_count() -> None:
    """It had been written down already."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink._begin("given up")
    sink.write(batch(0))
    assert sink_of(stored, 2).claim().last == Mark(CHECKPOINT, 0, "p0")


def test_a_table_that_was_made_again_is_refused() -> None:
    """At the write, and at each claim after it until a reset."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink.write(batch(0))
    remade(stored)
    for attempt in (lambda: sink.write(batch(1)), sink_of(stored, 2).claim):
        with pytest.raises(SinkError, match="was dropped and made again"):
            attempt()
    assert sink_of(stored, 3, resets=1).claim().last is None


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"log_store": "io.delta.storage.HDFSLogStore"}, "spark.delta.logStore.file.impl="),
        ({"configuration": {"delta.setTransactionRetentionDuration": "1 day"}}, "forgets who has written"),
    ],
)
def test_a_table_that_is_no_fence_is_refused_before_anything_is_written(
    what: dict[str, Any], said: str
) -> None:
    stored = Stored(**what)
    with pytest.raises(SinkError, match=said):
        sink_of(stored, 1).claim()
    assert stored.commits == 0


def test_a_table_that_is_told_to_forget_takes_no_further_batch() -> None:
    """The one under way is in it, and known to be when the setting is gone."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    stored.configuration["delta.setTransactionRetentionDuration"] = "interval 1 day"
    for attempt in (lambda: sink.write(batch(0)), sink_of(stored, 2).claim):
        with pytest.raises(SinkError, match="forgets who has written"):
            attempt()
    stored.configuration.clear()
    following = sink_of(stored, 3)
    assert following.claim().last == Mark(CHECKPOINT, 0, "p0")
    assert following.write(batch(0)).duplicate
    assert stored.rows == ["r"]


def test_a_write_that_fails_because_the_table_is_another_one_says_so() -> None:
    """Whatever Spark says of columns that the new one has not, or of a log that is gone."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink.write(batch(0))
    table = sink._table
    assert isinstance(table, ModelTable)

    def fails(*_: Any) -> None:
        remade(stored)
        raise ValueError("no such column")

    table.write = fails  # type: ignore[method-assign, assignment]  # as Spark would
    with pytest.raises(SinkError, match="was dropped and made again"):
        sink.write(batch(1))
    table.stored = None
    with pytest.raises(SinkError, match="is gone, or its _delta_log"):
        sink._require_newest()


def test_a_log_that_has_lost_its_end_is_noticed_and_not_forgotten() -> None:
    """The batch that was there is gone, and the next one has come to its place."""
    stored = Stored()
    sink = sink_of(stored, 1)
    sink.claim()
    sink.write(batch(0, rows=("a",)))
    before = replace(stored, versions=dict(stored.versions))
    sink.write(batch(1, rows=("b",)))
    vars(stored).update(vars(before))
    for attempt in (lambda: sink.write(batch(2, rows=("c",))), sink_of(stored, 2).claim):
        with pytest.raises(SinkError, match="newest entries of the _delta_log"):
            attempt()
    assert sink_of(stored, 3, resets=1).claim().last is None


def test_the_columns_of_a_new_table_are_the_query_s() -> None:
    """One that has columns already has to have these."""
    stored = Stored(columns=())
    sink = sink_of(stored, 1)
    sink.claim()
    sink.prepare([Field("a", "long")])
    assert [column["name"] for column in stored.columns] == ["a"]
    with pytest.raises(SinkError, match="has no column b"):
        sink.prepare([Field("a", "long"), Field("b", "string")])
    with pytest.raises(SinkError, match="a is of type long"):
        sink.prepare([Field("a", "string")])
    with pytest.raises(SinkError, match="has a column a, which the query does not yield"):
        sink.prepare([])
    adding = sink_of(stored, 1, merge_schema=True)
    adding.claim()
    adding.prepare([Field("A", "long"), Field("b", "string")])
    assert [column["name"] for column in stored.columns] == ["a", "b"]


@pytest.mark.parametrize(
    ("kind", "by", "fault"),
    [
        ("long", "abcde", "names 5 columns"),
        ({"type": "array"}, "a", "names a of type array, which has no order"),
    ],
)
def test_what_no_table_is_clustered_by_is_refused_at_each_start(kind: Any, by: str, fault: str) -> None:
    """A table that had its columns before would not be clustered by the next one."""
    stored = Stored(columns=())
    fields = [Field(name, kind) for name in "abcde"]
    for token in (1, 2):
        sink = sink_of(stored, token, cluster_by=tuple(by))
        sink.claim()
        with pytest.raises(SchemaError, match=f"cluster_by {fault}"):
            sink.prepare(fields)
    assert stored.columns == ()
