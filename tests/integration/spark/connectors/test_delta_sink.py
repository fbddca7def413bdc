"""The fenced Delta sink on real tables: what two owners can do to each other, and what is refused."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sql

from tests.integration.spark.connectors.delta_tables import LONG_S, Frozen, Table, put, until
from worker.query_engine import QueryError
from worker.sinks.base import Field, Written
from worker.sinks.errors import FencedError, SchemaError, SinkError
from worker.sinks.factory import inspect_sink
from worker.sinks.fence import Mark, Owner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights

COUNTS = "SELECT carrier, COUNT(*) AS n FROM source GROUP BY carrier"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "table")


@pytest.mark.parametrize("options", [{}, {"mode": "upsert", "key": ["id"]}, {"mode": "overwrite"}])
def test_batches_are_there_once_whoever_writes_them(table: Table, options: dict[str, Any]) -> None:
    """Replayed by the same owner and by the next one; older owners are refused, as are gaps."""
    first = table.owner(1, **options)
    assert put(first, table, 0, 1, 2).total == 2
    assert put(first, table, 0, 1, 2).duplicate
    second = table.owner(2, **options)
    assert second.claim().last == Mark("c", 0, "p0")
    assert put(second, table, 0, 1, 2).duplicate
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        put(first, table, 1, 9)
    with pytest.raises(SinkError, match="batches between them are missing"):
        put(second, table, 2, 9)
    assert put(second, table, 1, 2, 3) == Written(2, 4)
    kept = {"append": [(1, "b0"), (2, "b0"), (2, "b1"), (3, "b1")], "overwrite": [(2, "b1"), (3, "b1")]}
    kept["upsert"] = [(1, "b0"), (2, "b1"), (3, "b1")]
    assert table.rows == kept[options.get("mode", "append")]
    assert table.sink(3, **options).newest() == second._row


@pytest.mark.parametrize("options", [{}, {"mode": "upsert", "key": ["id"]}, {"mode": "overwrite"}])
def test_a_zombie_that_began_before_the_claim_fails_at_its_commit(
    table: Table, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Delta compares the number that it has read: the claim has set it since."""
    zombie = table.owner(1, **options)
    put(zombie, table, 0, 1)
    frozen = Frozen(table, zombie, 1, tmp_path)
    owner = table.owner(2, **options)
    put(owner, table, 1, 2)
    put(owner, table, 2, 3)
    assert isinstance(frozen.end(), FencedError)
    assert "zombie" not in {row[1] for row in table.rows}


@pytest.mark.parametrize("options", [{}, {"mode": "upsert", "key": ["id"]}, {"mode": "overwrite"}])
def test_a_zombie_that_began_after_the_claim_is_passed_over_and_finds_out(
    table: Table, options: dict[str, Any]
) -> None:
    """Delta says nothing to it; Spark must not hear that the batch is done."""
    zombie = table.owner(1, **options)
    put(zombie, table, 0, 1)
    owner = table.owner(2, **options)
    put(owner, table, 1, 2)
    with pytest.raises(FencedError):
        put(zombie, table, 1, 9)
    assert 9 not in {row[0] for row in table.rows}


def test_tasks_that_make_a_table_at_once_all_get_it(table: Table) -> None:
    """Delta lets one of them make it, and refuses the others' statement."""
    errors: list[Exception] = []

    def begin(task: str) -> None:
        try:
            sink = table.sink(1, task=task)
            sink.claim()
            sink.prepare(table.fields)
            put(sink, table, 0, int(task))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(str(task),)) for task in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert errors == []
    assert table.rows == [(task, "b0") for task in range(4)]


def test_two_claims_at_once_and_a_batch_beside_them(table: Table) -> None:
    """Whoever comes second reads again: the higher token stays, and no batch is forgotten."""
    first = table.owner(1)
    put(first, table, 0, 1)
    threads = [threading.Thread(target=partial(claim, table, token)) for token in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    newest = table.sink(5).newest()
    assert newest is not None
    assert (newest.token, newest.last) == (4, Mark("c", 0, "p0"))


def claim(table: Table, token: int) -> None:
    with suppress(FencedError):
        table.sink(token).claim()


def test_a_reset_begins_anew(table: Table) -> None:
    """In another checkpoint, from batch 0; what was written stays."""
    first = table.owner(1)
    put(first, table, 0, 1)
    anew = table.owner(2, resets=1)
    assert anew.write(table.batch(0, 1, checkpoint="d")).total == 2
    assert table.sink(3, resets=1).claim().last == Mark("d", 0, "p0")
    with pytest.raises(FencedError):
        put(first, table, 1, 2)
    assert [row[0] for row in table.rows] == [1, 1]


def test_an_empty_batch_moves_the_number(table: Table) -> None:
    """In each mode: else the next one would be one with a gap before it."""
    for mode in ({}, {"mode": "upsert", "key": ["id"]}, {"mode": "overwrite"}):
        shutil.rmtree(table.folder, ignore_errors=True)
        sink = table.owner(1, **mode)
        put(sink, table, 0, 1)
        put(sink, table, 1)
        assert put(sink, table, 2, 2).rows == 1


def test_an_overwrite_leaves_no_partition_that_its_batch_has_no_rows_for(table: Table) -> None:
    """Whatever the task's `spark_conf` has for other writes."""
    table.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    sink = table.sink(1, mode="overwrite")
    sink._partition_by = ["id"]
    sink.claim()
    sink.prepare(table.fields)
    put(sink, table, 0, 1, 2)
    put(sink, table, 1, 3)
    assert table.rows == [(3, "b1")]


def test_of_rows_with_one_key_the_last_counts(table: Table) -> None:
    """NULL is a key as any other."""
    sink = table.owner(1, mode="upsert", key=["id"])
    rows = [(1, "a"), (None, "b"), (1, "c"), (None, "d")]
    for batch_id in range(2):
        frame = table.spark.createDataFrame(rows, "id long, v string").coalesce(1)
        assert sink.write(table.batch(batch_id, frame=frame)).rows == 2
    assert {(row.id, row.v) for row in table.frame().collect()} == {(1, "c"), (None, "d")}


def test_names_of_columns_do_not_get_into_the_way_of_a_merge(table: Table) -> None:
    """They are those that the rows' order would be kept under, and the batch's own."""
    columns = ["sparkherd_batch", "sparkherd_nth", "sparkherd_from_last"]
    sink = table.sink(1, mode="upsert", key=columns[:1])
    sink.claim()
    sink.prepare([Field(name, "long") for name in columns])
    for batch_id in range(2):
        frame = table.spark.createDataFrame([(1, 7, 8), (1, batch_id, 9)], columns).coalesce(1)
        assert sink.write(table.batch(batch_id, frame=frame)).rows == 1
    assert [tuple(row) for row in table.frame().collect()] == [(1, 1, 9)]


def test_a_column_that_delta_computes_may_be_left_out(table: Table) -> None:
    """It is computed, as for whoever else appends there."""
    table.spark.sql(
        f"CREATE TABLE delta.`{table.folder}` (id LONG, v STRING, twice LONG GENERATED ALWAYS AS (id * 2))"
        " USING delta"
    )
    put(table.owner(1), table, 0, 3)
    assert [tuple(row) for row in table.frame().collect()] == [(3, "b0", 6)]


def test_several_tasks_write_one_table(table: Table) -> None:
    """Each has a number of its own."""
    one, two = table.owner(1, task="one"), table.owner(7, task="two")
    put(one, table, 0, 1)
    put(two, table, 0, 2)
    put(one, table, 1, 3)
    assert [row[0] for row in table.rows] == [1, 2, 3]
    assert table.sink(8, task="one").newest() == one._row


def test_the_table_is_made_as_the_definition_says(table: Table, spark: SparkSession) -> None:
    """By the first owner's start; rows are laid by the columns that cluster it."""
    del spark
    sink = table.sink(1, cluster_by=["id"])
    sink.claim()
    sink.prepare([Field("id", "long"), Field("v", "string")])
    put(sink, table, 0, 1)
    detail = table.spark.sql(f"DESCRIBE DETAIL '{table.folder}'").first()
    assert detail is not None
    assert detail.clusteringColumns == ["id"]


def test_columns_are_added_if_the_definition_says_so(table: Table) -> None:
    """Without it, the columns are named."""
    put(table.owner(1), table, 0, 1)
    more = [Field("id", "long"), Field("v", "string"), Field("n", "integer")]
    sink = table.sink(2)
    sink.claim()
    with pytest.raises(SchemaError, match="has no column n: "):
        sink.prepare(more)
    sink = table.sink(3, merge_schema=True)
    sink.claim()
    sink.prepare(more)
    frame = table.frame().select(sql.lit(2).cast("long").alias("id"), "v", sql.lit(5).alias("n"))
    sink.write(table.batch(1, frame=frame))
    assert {(row.id, row.n) for row in table.frame().collect()} == {(1, None), (2, 5)}


def test_what_a_check_says(table: Table) -> None:
    """Of a table that is not there, and of one whose columns differ."""
    ask = partial(inspect_sink, group="g", session=lambda: table.spark)
    (finding,) = ask(table.definition(), [Field("id", "long")])
    assert finding.is_fine
    assert "would be made" in finding.text
    assert not table.folder.exists()
    put(table.owner(1), table, 0, 1)
    found = list(ask(table.definition(), [Field("id", "string"), Field("v", "string")]))
    assert ["id is of type long" in each.text for each in found] == [True]


def test_a_table_that_forgets_is_refused(table: Table) -> None:
    """Transaction ids that expire are no fence."""
    table.owner(1)
    path, name = table.folder, "delta.setTransactionRetentionDuration"
    table.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{name}' = 'interval 1 day')")
    with pytest.raises(SinkError, match=f"forgets who has written to it .{name}"):
        table.sink(2).claim()


def test_a_table_that_was_made_again_is_refused(table: Table) -> None:
    """With what the task had written gone from it, going on would lose rows."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    shutil.rmtree(table.folder)
    table.spark.range(1).selectExpr("id", "'x' AS v").write.format("delta").save(str(table.folder))
    with pytest.raises(SinkError, match="was dropped and made again"):
        put(sink, table, 1, 2)


def test_of_two_commits_of_one_version_one_is_told_that_it_is_in(spark: SparkSession, tmp_path: Path) -> None:
    """Though both have looked before; nothing is left of the other one."""
    jvm: Any = spark._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    file = jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/00000000000000000000.json")
    one, two = (made(jvm, "sparkherd.delta.LinkLogStore", conf) for _ in range(2))
    assert raced(jvm, conf, file, one, two) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["00000000000000000000.json"]
    assert (tmp_path / "00000000000000000000.json").read_text() == "two\n"


def made(jvm: Any, name: str, conf: Any) -> Any:
    """A log store, by the name of its class."""
    package: Any = jvm
    for part in name.split("."):
        package = getattr(package, part)
    return package(conf)


def raced(jvm: Any, conf: Any, file: Any, one: Any, two: Any) -> int:
    """How many of two writers of one file are told that it is theirs, the first being held in between.

    What a log store writes comes from an iterator, here one that waits for a stream; it is asked when the
    store has looked for the file and has begun a draft of it.
    """
    stream = jvm.java.io.PipedOutputStream()
    held = jvm.java.util.Scanner(jvm.java.io.PipedInputStream(stream))
    folder = Path(file.toUri().getPath()).parent
    told = []

    def write(store: Any, actions: Any) -> None:
        with suppress(Exception):
            store.write(file, actions, *(False,), conf)
            told.append(store)

    thread = threading.Thread(target=write, args=(one, held))
    thread.start()
    until(lambda: any(folder.iterdir()))
    write(two, jvm.java.util.Collections.singletonList("two").iterator())
    stream.write(bytearray(b"one"))
    stream.close()
    thread.join(LONG_S)
    return len(told)


async def test_a_task_writes_a_delta_table_and_goes_on_with_the_next_owner(
    start: Any, flights: Flights, catch_up: Any, table: Table
) -> None:
    """Through the engine: each row once, the older query is refused and its batch is not marked as done."""
    sink = {"format": "delta", "options": {"path": str(table.folder)}, "partition_by": ["carrier"]}
    flights.add(files=2)
    zombie = await start(token=1, source=flights.source, sink=sink)
    await catch_up(zombie)
    owner = table.sink(2, task=zombie.spec.task)
    owner._owner = Owner(zombie.spec.group, zombie.spec.task, 2)
    owner._table._app = f"sparkherd/{zombie.spec.group}/{zombie.spec.task}"  # type: ignore[attr-defined]
    owner.claim()
    flights.add()
    ended = await zombie.ended()
    assert ended.fenced
    successor = await start(token=3, source=flights.source, sink=sink)
    await catch_up(successor)
    assert sorted(row.id for row in table.frame().collect()) == flights.ids
    assert any("carrier=UA" in file for file in table.frame().inputFiles())


async def test_complete_results_take_each_other_s_place(
    start: Any, flights: Flights, catch_up: Any, table: Table, spark: SparkSession
) -> None:
    """In a table that has a name."""
    name = f"counts_{table.folder.parent.name.replace('-', '_')}"
    sink = {"format": "delta", "table": name, "options": {"mode": "overwrite"}}
    flights.add(files=2)
    query = await start(source=flights.source, sql=COUNTS, sink=sink, output_mode="complete")
    await catch_up(query)
    rows = spark.table(name).collect()
    assert sum(row.n for row in rows) == len(flights.ids)
    assert len(rows) == 3


async def test_columns_that_do_not_fit_fail_the_start(start: Any, flights: Flights, table: Table) -> None:
    """Before any batch; the cause names them."""
    put(table.owner(1), table, 0, 1)
    sink = {"format": "delta", "options": {"path": str(table.folder)}}
    with pytest.raises(QueryError, match="has no column carrier"):
        await start(source=flights.source, sink=sink)


@pytest.mark.parametrize("options", [{}, {"mode": "upsert", "key": ["id"]}, {"mode": "overwrite"}])
def test_rows_are_counted_whatever_the_session_says_of_metrics(table: Table, options: dict[str, Any]) -> None:
    """Nothing but the commit's own metrics counts them; the user's setting stays as it was."""
    setting = "spark.databricks.delta.history.metricsEnabled"
    table.spark.conf.set(setting, "false")
    sink = table.owner(1, **options)
    assert put(sink, table, 0, 1, 2) == Written(2, 2)
    assert put(sink, table, 1) == Written(0, 2)
    assert put(table.owner(2, **options), table, 2, 2, 3) == Written(2, 4)
    assert table.spark.conf.get(setting) == "false"
