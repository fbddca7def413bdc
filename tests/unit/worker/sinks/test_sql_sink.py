from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from protocol.definition import SqlOptions
from worker.sinks import sql as sql_module
from worker.sinks.base import Field, Owner, Written
from worker.sinks.errors import FencedError, OutOfOrderError, SchemaError, SinkError
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from pathlib import Path

MakeSink = Callable[..., SqlSink]


def rows(sink: SqlSink) -> list[tuple[Any, ...]]:
    with sink._engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql("SELECT carrier, delay FROM delays")]


def fence(sink: SqlSink) -> tuple[Any, ...]:
    with sink._engine.connect() as connection:
        return tuple(connection.exec_driver_sql("SELECT * FROM sparkherd_fence").one())


def test_batches_are_written_in_order(make_sink: MakeSink, batch: Any) -> None:
    """Rows and fence move together, and the total grows."""
    sink = make_sink(3)
    assert fence(sink) == ("g", "t", 3, None, None, 0)
    assert sink.write(batch(0, [("UA", 1.0), ("AA", None)])) == Written(rows=2, total=2)
    assert sink.write(batch(1, [])) == Written(rows=0, total=2)
    assert sink.write(batch(2, [("B6", 2.0)])) == Written(rows=1, total=3)
    assert rows(sink) == [("UA", 1.0), ("AA", None), ("B6", 2.0)]
    assert fence(sink) == ("g", "t", 3, "c1", 2, 3)


def test_a_batch_seen_before_is_passed_over(
    make_sink: MakeSink, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated batch is acknowledged and its plan run to the end, but none of its rows is written."""
    monkeypatch.setattr(sql_module, "CHUNK_ROWS", 1)
    sink = make_sink(1)
    sink.write(batch(0, [("UA", 1.0)] * 20))
    again = batch(0, [("UA", 1.0)] * 20)
    assert sink.write(again) == Written(rows=0, total=20, duplicate=True)
    assert again.consumed
    assert len(rows(sink)) == 20


def test_a_zombie_writes_nothing(make_sink: MakeSink, batch: Any) -> None:
    """Once a newer owner has claimed the task, the older one's next batch is refused whole."""
    zombie = make_sink(1)
    zombie.write(batch(0, [("UA", 1.0)]))
    owner = make_sink(2)
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        zombie.write(batch(1, [("UA", 2.0)]))
    owner.write(batch(1, [("UA", 2.0)]))
    with pytest.raises(FencedError):
        zombie.write(batch(1, [("UA", 2.0)]))
    assert rows(owner) == [("UA", 1.0), ("UA", 2.0)]
    assert fence(owner) == ("g", "t", 2, "c1", 1, 2)


def test_a_zombie_cannot_claim_again(make_sink: MakeSink) -> None:
    """The fence never goes down; the same token may claim again."""
    owner = make_sink(2)
    owner.claim()
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        make_sink(1)
    assert fence(owner)[2] == 2


def test_a_zombie_inside_its_transaction_is_still_first(make_sink: MakeSink, batch: Any, url: str) -> None:
    """A claim waits for a batch that is being written; what comes next then follows it."""
    zombie = make_sink(1)
    claimed = threading.Event()
    late = SqlSink(SqlOptions(url=url, table="delays"), Owner("g", "t", 2))

    def claim() -> None:
        late.claim()
        claimed.set()

    claimer = threading.Thread(target=claim)

    class Staged(batch):  # type: ignore[misc]  # a fixture's class has no static type
        def chunks(self, size: int) -> Any:
            del size
            for chunk in range(sql_module.CHUNKS_AHEAD):
                yield [("UA", float(chunk))]
            claimer.start()  # the transaction is open by now
            assert not claimed.is_set()
            yield [("UA", -1.0)]
            assert not claimed.is_set()

    assert zombie.write(Staged(0, [])).rows == sql_module.CHUNKS_AHEAD + 1
    claimer.join()
    assert claimed.is_set()
    late.prepare((Field("carrier", "string"), Field("delay", "double")))
    assert late.write(batch(0, [("UA", 0.0)])).duplicate
    late.close()


def test_a_gap_is_an_error(make_sink: MakeSink, batch: Any) -> None:
    """A checkpoint that is ahead of the sink has lost rows; this is said, not passed over."""
    sink = make_sink(1)
    with pytest.raises(OutOfOrderError, match="at batch 5, but the last batch in the sink is none"):
        sink.write(batch(5, [("UA", 1.0)]))
    sink.write(batch(0, [("UA", 1.0)]))
    with pytest.raises(OutOfOrderError, match="at batch 2, but the last batch in the sink is 0"):
        sink.write(batch(2, [("UA", 3.0)]))
    assert rows(sink) == [("UA", 1.0)]


def test_a_fresh_checkpoint_with_an_old_fence_is_an_error(make_sink: MakeSink, batch: Any) -> None:
    """Its first batches look like duplicates; dropping them would lose rows in silence."""
    make_sink(1).write(batch(0, [("UA", 1.0)]))
    sink = make_sink(2)
    with pytest.raises(OutOfOrderError, match="checkpoint c2, but the sink holds its rows up to batch 0"):
        sink.write(batch(0, [("AA", 9.0)], checkpoint="c2"))
    assert rows(sink) == [("UA", 1.0)]


def test_a_fence_row_deleted_by_hand_is_noticed(make_sink: MakeSink, batch: Any) -> None:
    """Without its row nothing is written until the task is claimed again."""
    sink = make_sink(1)
    with sink._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM sparkherd_fence")
    with pytest.raises(SinkError, match="fence row of task t of group g is gone"):
        sink.write(batch(0, [("UA", 1.0)]))


@pytest.mark.parametrize("size", [1, 1000])
def test_a_failure_in_the_middle_leaves_nothing(
    size: int, make_sink: MakeSink, batch: Any, failing_batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither rows nor a moved fence row, whether it comes before or inside the transaction."""
    monkeypatch.setattr(sql_module, "CHUNK_ROWS", size)
    sink = make_sink(1)
    with pytest.raises(RuntimeError, match="an executor is gone"):
        sink.write(failing_batch(0, [("UA", 1.0)] * 20))
    assert rows(sink) == []
    assert fence(sink) == ("g", "t", 1, None, None, 0)
    assert sink.write(batch(0, [("UA", 1.0)] * 20)).rows == 20


def test_a_refused_row_takes_its_batch_with_it(make_sink: MakeSink, batch: Any, url: str) -> None:
    """The database's own words, no statement, no values, and nothing written."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("CREATE TABLE delays (carrier TEXT UNIQUE, delay REAL)")
    connection.close()
    sink = make_sink(1)
    with pytest.raises(SinkError) as refused:
        sink.write(batch(0, [("UA", 1.0), ("secret", 2.0), ("UA", 3.0)]))
    assert str(refused.value) == f"the database {url} refused: UNIQUE constraint failed: delays.carrier"
    assert rows(sink) == []
    assert fence(sink) == ("g", "t", 1, None, None, 0)


def test_upsert_keeps_the_newest_row_of_a_key(make_sink: MakeSink, batch: Any) -> None:
    """Across batches and within one."""
    sink = make_sink(1, mode="upsert", key=("carrier",))
    sink.write(batch(0, [("UA", 1.0), ("AA", 1.0), ("UA", 2.0)]))
    sink.write(batch(1, [("UA", 3.0)]))
    assert sorted(rows(sink)) == [("AA", 1.0), ("UA", 3.0)]


def test_upsert_of_nothing_but_keys(make_sink: MakeSink, batch: Any) -> None:
    """A set of rows is a table whose key is all of its columns."""
    sink = make_sink(1, mode="upsert", key=("delay", "CARRIER"))
    sink.write(batch(0, [("UA", 1.0), ("UA", 1.0)]))
    assert rows(sink) == [("UA", 1.0)]


def test_upsert_refuses_a_key_without_value(make_sink: MakeSink, batch: Any) -> None:
    """No NULL equals another, so such rows would pile up; SQLite would even number them itself."""
    sink = make_sink(1, (Field("carrier", "long"), Field("delay", "double")), mode="upsert", key=("carrier",))
    with pytest.raises(SchemaError, match="the key column carrier is NULL"):
        sink.write(batch(0, [(1, 1.0), (None, 1.0)]))
    assert rows(sink) == []


def test_six_tasks_share_a_file(url: str, batch: Any) -> None:
    """Writers queue: claims, the making of one table and batches at the same time lose nothing."""
    start = threading.Barrier(6)
    failures: list[BaseException] = []

    def run(task: int) -> None:
        try:
            start.wait()
            sink = SqlSink(SqlOptions(url=url, table="delays"), Owner("g", f"t{task}", 1))
            sink.claim()
            sink.prepare((Field("carrier", "string"), Field("delay", "double")))
            for batch_id in range(20):
                sink.write(batch(batch_id, [(f"t{task}", float(n)) for n in range(100)]))
            sink.close()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
            failures.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        counts = connection.execute("SELECT carrier, COUNT(*) FROM delays GROUP BY carrier").fetchall()
        fences = connection.execute("SELECT batch_id, row_count FROM sparkherd_fence").fetchall()
    connection.close()
    assert dict(counts) == {f"t{task}": 2000 for task in range(6)}
    assert fences == [(19, 2000)] * 6


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """An unusable database is told in one line, with its address."""
    sink = SqlSink(SqlOptions(url=f"sqlite:///{tmp_path}/none/out.db", table="t"), Owner("g", "t", 1))
    with pytest.raises(SinkError, match=r"none/out\.db refused: unable to open database file"):
        sink.claim()
