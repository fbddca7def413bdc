"""What the SQL sink promises, on every database: the batches are lists, the databases are real."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from definition.sinks.sql import SqlOptions
from worker.sinks.base import Field, Written
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from pathlib import Path

MakeSink = Callable[..., SqlSink]
ROWS = "SELECT carrier, delay FROM delays ORDER BY carrier, delay"
FENCE = "SELECT token, resets, checkpoint_id, batch_id, row_count FROM sparkherd_fence"


@pytest.fixture(autouse=True, params=["collected", "inline", "staged"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, batch: Any) -> None:
    """Every promise holds for rows that pass through the driver, either way, and for rows that are staged."""
    monkeypatch.setattr(batch, "collects", request.param == "collected")
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
        monkeypatch.setattr("worker.sinks.parts.CHUNK_ROWS", 3)


def test_batches_are_written_in_order(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Rows and fence move together, and the total grows."""
    sink = make_sink(3)
    assert peek(FENCE) == [(3, 0, None, None, 0)]
    assert sink.write(batch(0, [("UA", 1.0), ("AA", None)])) == Written(rows=2, total=2)
    assert sink.write(batch(1, [])) == Written(rows=0, total=2)
    assert sink.write(batch(2)) == Written(rows=0, total=2)
    assert sink.write(batch(3, [("B6", 2.0)], [("DL", 1.0)])) == Written(rows=2, total=4)
    assert peek(ROWS) == [("AA", None), ("B6", 2.0), ("DL", 1.0), ("UA", 1.0)]
    assert peek(FENCE) == [(3, 0, "c1", 3, 4)]
    assert sink.claim() == FenceRow(3, 0, Mark("c1", 3, "as planned 3"), 4)
    assert peek.leftovers() == []


def test_a_batch_seen_before_is_passed_over(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """The last batch, repeated, is acknowledged and computed to the end, but none of its rows is written."""
    sink = make_sink(1)
    sink.write(batch(0, [("UA", 1.0)] * 20))
    again = batch(0, [("UA", 1.0)] * 20)
    assert make_sink(2).write(again) == Written(rows=0, total=20, duplicate=True)
    assert again.computed == 20
    assert len(peek(ROWS)) == 20


def test_a_zombie_writes_nothing(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Once a newer owner has claimed the task, nothing comes of the older one's batches."""
    zombie = make_sink(1)
    zombie.write(batch(0, [("UA", 1.0)]))
    owner = make_sink(2)
    late = batch(1, [("UA", 2.0)])
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        zombie.write(late)
    assert peek(ROWS) == [("UA", 1.0)]
    owner.write(batch(1, [("UA", 2.0)]))
    with pytest.raises(FencedError):
        zombie.write(batch(1, [("UA", 2.0)]))
    assert peek(ROWS) == [("UA", 1.0), ("UA", 2.0)]
    assert peek(FENCE) == [(2, 0, "c1", 1, 2)]
    assert peek.leftovers() == []


def test_a_batch_asks_the_fence_once(make_sink: MakeSink, batch: Any) -> None:
    """Only the first batch after a claim may have been written before, and the claim knows of that."""
    sink = make_sink(1)
    asked: list[str] = []
    sa.event.listen(sink._engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    sink.write(batch(0, [("UA", 1.0)]))
    sink.write(batch(1, [("AA", 1.0)]))
    assert sum(text.startswith("SELECT") and "sparkherd_fence" in text for text in asked) == 2, asked


def test_a_zombie_between_computing_and_writing(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """A worker that froze when its rows were computed, or staged, finds the fence raised when it thaws."""
    zombie = make_sink(1)
    frozen = batch(0, [("UA", 1.0)] * 9, [("AA", 1.0)])
    owners = []

    def take_over() -> None:
        owners.append(make_sink(2))
        owners[0].write(batch(0, [("UA", 1.0)]))

    frozen.before_return = take_over
    with pytest.raises(FencedError):
        zombie.write(frozen)
    assert peek(ROWS) == [("UA", 1.0)]
    assert peek(FENCE) == [(2, 0, "c1", 0, 1)]
    assert owners[0].write(batch(1, [("AA", 1.0)])).total == 2


def test_a_zombie_cannot_claim_again(make_sink: MakeSink, peek: Any) -> None:
    """The fence never goes down; the same token may claim again."""
    owner = make_sink(2)
    owner.claim()
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        make_sink(1)
    assert peek(FENCE)[0][0] == 2


def test_only_the_attempts_that_count_are_written(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Partitions that were tried three times, as after failures or by speculation, are there once."""
    sink = make_sink(1)
    rows = [[(carrier, float(n)) for n in range(10)] for carrier in ("UA", "AA")]
    assert sink.write(batch(0, *rows, tries=3)).rows == 20
    assert len(peek(ROWS)) == 20
    assert peek.leftovers() == []


def test_staged_rows_of_dead_attempts_are_cleared_up(
    make_sink: MakeSink, batch: Any, peek: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a dead worker has staged goes with the next owner's claim; what other tasks have stays."""

    class PowerCutError(Exception):
        pass

    def cut(*_: Any) -> None:
        raise PowerCutError

    for token, task in [(1, "t"), (1, "t"), (7, "other")]:
        dying = batch(0, [("UA", 1.0)] * 9, tries=2)
        dying.before_return = cut
        sink = make_sink(token, task=task)
        with monkeypatch.context() as patch:
            patch.setattr("worker.sinks.staging.Staging.clear", cut)
            with pytest.raises(PowerCutError):
                sink.write(dying)
    left = peek.leftovers()
    assert len(left) in {0, 2}
    owner = make_sink(2)
    assert len(peek.leftovers()) == len(left) // 2
    owner.write(batch(0, [("UA", 1.0)] * 9))
    assert len(peek(ROWS)) == 9


def test_the_same_owner_does_its_batch_again(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """A restart under the same token finds its own half-staged batch, and takes only what is new of it."""

    def cut() -> None:
        raise OSError("the power is gone")

    sink = make_sink(1)
    failing = batch(0, [("UA", 1.0)] * 9)
    failing.before_return = cut
    with pytest.raises(OSError, match="the power is gone"):
        sink.write(failing)
    again = make_sink(1)
    assert again.write(batch(0, [("UA", 1.0)] * 9, tries=2)).rows == 9
    assert len(peek(ROWS)) == 9
    assert peek.leftovers() == []


def test_a_gap_is_an_error(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """A checkpoint that is ahead of the sink has lost rows; this is said, not passed over."""
    sink = make_sink(1)
    with pytest.raises(OutOfOrderError, match="at batch 5, but the last batch in the sink is none"):
        sink.write(batch(5, [("UA", 1.0)]))
    sink.write(batch(0, [("UA", 1.0)]))
    with pytest.raises(OutOfOrderError, match="at batch 2, but the last batch in the sink is 0"):
        sink.write(batch(2, [("UA", 3.0)]))
    assert peek(ROWS) == [("UA", 1.0)]


def test_a_fresh_checkpoint_with_an_old_fence_is_an_error(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Its first batches look like duplicates; dropping them would lose rows in silence."""
    make_sink(1).write(batch(0, [("UA", 1.0)]))
    sink = make_sink(2)
    with pytest.raises(OutOfOrderError, match="checkpoint c2, but the sink holds its rows up to batch 0"):
        sink.write(batch(0, [("AA", 9.0)], checkpoint="c2"))
    assert peek(ROWS) == [("UA", 1.0)]


def test_an_older_copy_of_the_checkpoint_is_an_error(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """It plans its batches anew: one of a number seen before may hold other rows, so none is passed over."""
    sink = make_sink(1)
    for number in range(3):
        sink.write(batch(number, [("UA", float(number))]))
    with pytest.raises(OutOfOrderError, match="at batch 1 of an older copy of checkpoint c1"):
        make_sink(2).write(batch(1, [("AA", 9.0)]))
    with pytest.raises(OutOfOrderError, match=r"at batch 2 of an older copy .* planned otherwise"):
        make_sink(2).write(batch(2, [("AA", 9.0)], plan="planned anew"))
    assert len(peek(ROWS)) == 3


def test_a_reset_starts_anew(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Under the higher number of resets batch 0 of a new checkpoint counts; whoever was before is fenced."""
    old = make_sink(1)
    old.write(batch(0, [("UA", 1.0)]))
    new = make_sink(2, resets=1)
    assert peek(FENCE) == [(2, 1, None, None, 1)]
    with pytest.raises(FencedError):
        old.write(batch(1, [("UA", 1.0)]))
    assert new.write(batch(0, [("UA", 1.0)], checkpoint="c2")).total == 2
    assert make_sink(3, resets=1).claim().last == Mark("c2", 0, "as planned 0")
    with pytest.raises(FencedError, match="the sink knows of its reset 1, its manager does not"):
        make_sink(4)


def test_a_fence_row_deleted_by_hand_is_noticed(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Without its row nothing is written until the task is claimed again."""
    sink = make_sink(1)
    peek.run("DELETE FROM sparkherd_fence")
    with pytest.raises(SinkError, match="fence row of task t of group g is gone"):
        sink.write(batch(0, [("UA", 1.0)]))


def test_a_refused_row_takes_its_batch_with_it(make_sink: MakeSink, batch: Any, url: str, peek: Any) -> None:
    """The database's own words, no statement, no values, and nothing written."""
    peek.run("CREATE TABLE delays (carrier TEXT UNIQUE, delay REAL)")
    sink = make_sink(1)
    with pytest.raises(SinkError) as refused:
        sink.write(batch(0, [("UA", 1.0), ("secret", 2.0)], [("UA", 3.0)]))
    said = str(refused.value)
    assert said.startswith(f"the database {url.partition(':')[0]}")
    assert "unique constraint" in said.lower()
    assert "secret" not in said
    assert "INSERT" not in said
    assert peek(ROWS) == []
    assert peek(FENCE) == [(1, 0, None, None, 0)]
    peek.run("DROP TABLE delays", "CREATE TABLE delays (carrier TEXT, delay REAL)")
    assert make_sink(1).write(batch(0, [("UA", 1.0)])).rows == 1


def test_upsert_keeps_the_newest_row_of_a_key(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Across batches, between the partitions of one, and within one partition."""
    sink = make_sink(1, mode="upsert", key=("carrier",))
    sink.write(batch(0, [("UA", 1.0), ("AA", 1.0), ("UA", 2.0)], [("DL", 5.0), ("AA", 0.0)], tries=2))
    assert peek(ROWS) == [("AA", 0.0), ("DL", 5.0), ("UA", 2.0)]
    sink.write(batch(1, [("UA", 3.0)]))
    assert peek(ROWS) == [("AA", 0.0), ("DL", 5.0), ("UA", 3.0)]


def test_upsert_of_nothing_but_keys(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """A set of rows is a table whose key is all of its columns."""
    sink = make_sink(1, mode="upsert", key=("delay", "CARRIER"))
    sink.write(batch(0, [("UA", 1.0), ("UA", 1.0)]))
    assert peek(ROWS) == [("UA", 1.0)]


def test_upsert_refuses_a_key_without_value(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """No NULL equals another, so such rows would pile up; SQLite would even number them itself."""
    sink = make_sink(1, (Field("carrier", "long"), Field("delay", "double")), mode="upsert", key=("carrier",))
    with pytest.raises(SinkError, match="the key column carrier is NULL"):
        sink.write(batch(0, [(1, 1.0), (None, 1.0)]))
    assert peek(ROWS) == []


def test_what_no_column_can_hold_is_named(make_sink: MakeSink, batch: Any, peek: Any, url: str) -> None:
    """A year beyond 9999; on PostgreSQL also the character NUL in a text. The batch is refused whole."""
    sink = make_sink(1, (Field("carrier", "string"), Field("at", "timestamp"), Field("delay", "date")))
    with pytest.raises(SinkError, match=r"timestamp lies outside the years 1 to 9999.*: column at"):
        sink.write(batch(0, [("UA", 0, 0), ("UA", 2**60, 0)]))
    with pytest.raises(SinkError, match=r"date lies outside the years 1 to 9999.*: column delay"):
        sink.write(batch(0, [("UA", 0, 3_000_000)]))
    nul = batch(0, [("U\0A", 0, 0)])
    if url.startswith("sqlite"):
        assert sink.write(nul).rows == 1
    else:
        with pytest.raises(SinkError, match="column carrier holds the character NUL"):
            sink.write(nul)
        assert peek(ROWS) == []


def test_six_tasks_share_a_table(open_sink: MakeSink, batch: Any, peek: Any) -> None:
    """Writers queue: claims, the making of one table and batches at the same time lose nothing."""
    start = threading.Barrier(6)
    failures: list[BaseException] = []

    def run(task: int) -> None:
        try:
            start.wait()
            sink = open_sink(1, task=f"t{task}")
            sink.claim()
            sink.prepare((Field("carrier", "string"), Field("delay", "double")))
            for batch_id in range(10):
                sink.write(batch(batch_id, [(f"t{task}", float(n)) for n in range(50)]))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
            failures.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    counts = peek("SELECT carrier, COUNT(*) FROM delays GROUP BY carrier")
    assert dict(counts) == {f"t{task}": 500 for task in range(6)}
    assert peek("SELECT batch_id, row_count FROM sparkherd_fence") == [(9, 500)] * 6
    assert peek.leftovers() == []


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """An unusable database is told in one line, with its address."""
    sink = SqlSink(SqlOptions(url=f"sqlite:///{tmp_path}/none/out.db", table="t"), Owner("g", "t", 1))
    with pytest.raises(SinkError, match=r"none/out\.db refused: unable to open database file"):
        sink.claim()
