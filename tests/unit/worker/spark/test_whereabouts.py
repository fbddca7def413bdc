"""What is said of a query that gets nowhere. The stacks are Spark's own, without what says nothing."""

from __future__ import annotations

import pytest

from worker.spark.classic.whereabouts import frame_of
from worker.spark.whereabouts import PythonFrame, Seen, TaskSetSeen, ThreadSeen, is_held_up, told

SOURCES = "org.apache.spark.sql.execution.streaming.sources"
RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
BATCH = (
    f"{RUNTIME}.MicroBatchExecution.$anonfun$runBatch$19",
    "org.apache.spark.sql.execution.SQLExecution$.withNewExecutionId",
    f"{RUNTIME}.MicroBatchExecution.runBatch",
    f"{RUNTIME}.MicroBatchExecution.executeOneBatch",
    f"{RUNTIME}.StreamExecution$$anon$1.run",
)
COMPUTING = (
    "jdk.internal.misc.Unsafe.park",
    "scala.concurrent.impl.Promise$DefaultPromise.tryAwait0",
    "org.apache.spark.util.ThreadUtils$.awaitReady",
    "org.apache.spark.scheduler.DAGScheduler.runJob",
    *BATCH,
)
CALLED_BACK = (
    "java.net.Socket$SocketInputStream.read",
    "py4j.ClientServerConnection.readBlockingResponse",
    "py4j.CallbackClient.sendCommand",
    "jdk.proxy3.$Proxy41.call",
    f"{SOURCES}.PythonForeachBatchHelper$.$anonfun$callForeachBatch$1",
    f"{SOURCES}.ForeachBatchSink.addBatch",
    *BATCH,
)
LOCKED = (
    "jdk.internal.misc.Unsafe.park",
    "java.util.concurrent.locks.ReentrantLock.lock",
    "org.apache.spark.sql.classic.StreamingQueryManager.$anonfun$register$1$adapted",
    *BATCH,
)
LOCK = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
LATCH = "scala.concurrent.impl.CompletionLatch"
BASE = (
    PythonFrame("worker.spark.batches.batch_gate", "through_gate.<locals>.gated", 160),
    PythonFrame("pyspark.sql.utils", "ForeachBatchFunction.call", 162),
    PythonFrame("py4j.clientserver", "ClientServerConnection._call_proxy", 644),
    PythonFrame("threading", "Thread.run", 982),
)
USER = (
    PythonFrame("herd_rules.tasks", "flights.<locals>.put", 12),
    PythonFrame("worker.spark.batches.rows", "CurrentBatch.do", 104),
    *BASE,
)
SINK = (
    PythonFrame("psycopg.connection", "Connection.wait", 9),
    PythonFrame("sqlalchemy.engine.base", "Connection.execute", 8),
    PythonFrame("worker.sinks.database", "Database.transaction", 7),
    PythonFrame("worker.sinks.sql", "SqlSink.write", 6),
    PythonFrame("worker.spark.batches.put_batch", "put_batch", 34),
    PythonFrame("worker.spark.classic.query_output", "ClassicQueryOutput.write.<locals>.put", 70),
    PythonFrame("worker.spark.batches.rows", "CurrentBatch.do", 104),
    *BASE,
)


def stream(*frames: str, lock: str | None = None, owner: str | None = None) -> ThreadSeen:
    """The thread of the query of task `t`."""
    return ThreadSeen("stream execution thread for t [id = 1, runId = 2]", frames, lock, owner)


def sets(**pools: tuple[int, int, int]) -> list[TaskSetSeen]:
    """One of each pool: how many Spark tasks there are, are done, and run."""
    return [TaskSetSeen(name, number, *counts) for number, (name, counts) in enumerate(pools.items())]


@pytest.mark.parametrize(
    ("owner", "named"),
    [
        ("stream execution thread for b [id = 3, runId = 4]", "the query of task b"),
        ("Executor task launch worker for task 0.0 in stage 1.0 (TID 7)", "a Spark task of b"),
        ("Executor task launch worker for task 0.0 in stage 9.0 (TID 7)", "a Spark task of another query"),
        ("Thread-3", "thread Thread-3"),
    ],
)
def test_who_has_the_lock_is_named(owner: str, named: str) -> None:
    """By its task, if it is a query's; and where it is waited for."""
    seen = Seen("t", stream(*LOCKED, lock=LOCK, owner=owner), sets(t=(4, 4, 0), b=(2, 0, 1)))
    where = f"({LOCK}, in StreamingQueryManager.register)"
    assert told(seen) == f"it waits for a lock that {named} has {where}"


def test_a_lock_whose_owner_java_does_not_know_is_told_without() -> None:
    """Of a lock that several may read under; a latch is no lock."""
    seen = Seen("t", stream(*LOCKED, lock="java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync"))
    assert told(seen).startswith("it waits for a lock (java.util.concurrent.locks.ReentrantReadWriteLock")
    assert "lock" not in told(Seen("t", stream(*COMPUTING, lock=LATCH)))


def test_a_starved_query_names_whose_tasks_run_instead() -> None:
    """Those with the most first; also where the thread waits for a plan that adapts itself."""
    seen = Seen("t", stream(*COMPUTING, lock=LATCH), sets(t=(4, 0, 0), c=(1, 0, 1), b=(9, 3, 2)))
    assert told(seen) == "it waits for the scheduler: 4 Spark tasks of it wait, while 2 of b, 1 of c run"
    none = Seen("t", stream(*COMPUTING, lock=LATCH), sets(t=(4, 1, 0), b=(9, 9, 0)))
    assert told(none) == "it waits for executors: 3 Spark tasks of it wait, and none runs"


@pytest.mark.parametrize(
    ("pools", "is_so"),
    [
        ({"t": (4, 0, 0), "hog": (9, 0, 2)}, True),
        ({"t": (4, 1, 1), "hog": (9, 0, 1)}, False),
        ({"t": (4, 4, 0), "hog": (9, 0, 2)}, False),
        ({"t": (4, 1, 0)}, True),
        ({"hog": (9, 0, 2)}, False),
    ],
    ids=["others have all cores", "it has one", "it needs none", "nobody has any", "it has no job"],
)
def test_a_query_without_a_core_is_held_up(pools: dict[str, tuple[int, int, int]], *, is_so: bool) -> None:
    """By those that have them all, or by nobody known; not by a job of its own."""
    assert is_held_up(Seen("t", stream(*COMPUTING, lock=LATCH), sets(**pools))) is is_so


def test_a_query_with_two_jobs_does_not_wait_for_others() -> None:
    """The one of them has the core that the other one wants."""
    both = [TaskSetSeen("t", 1, 4, 0, 0), TaskSetSeen("t", 2, 4, 0, 1), TaskSetSeen("hog", 3, 9, 0, 1)]
    assert not is_held_up(Seen("t", stream(*COMPUTING, lock=LATCH), both))


@pytest.mark.parametrize(
    ("owner", "is_so"),
    [
        ("stream execution thread for b [id = 3, runId = 4]", True),
        ("Executor task launch worker for task 0.0 in stage 1.0 (TID 7)", True),
        ("stream execution thread for t [id = 1, runId = 2]", False),
        ("Executor task launch worker for task 0.0 in stage 0.0 (TID 7)", False),
        ("Thread-3", False),
        (None, False),
    ],
)
def test_a_query_that_waits_for_a_lock_of_another_is_held_up(owner: str | None, *, is_so: bool) -> None:
    """Not for one of its own, nor for one that may be its own; nor where the other waits for it in turn."""
    waiting = stream(*LOCKED, lock=LOCK, owner=owner)
    seen = Seen("t", waiting, sets(t=(4, 1, 1), b=(2, 0, 1)))
    assert is_held_up(seen) is is_so
    assert not is_held_up(seen._replace(is_deadlocked=True))
    executor = waiting._replace(name="Executor task launch worker for task 1.0 in stage 0.0 (TID 8)")
    assert is_held_up(seen._replace(thread=stream(*COMPUTING), executors=[executor])) is is_so


def test_a_query_at_its_own_work_is_not_held_up() -> None:
    """Whatever others do beside it."""
    assert not is_held_up(Seen("t", stream(*CALLED_BACK), sets(hog=(9, 0, 2)), python=USER))


def test_a_query_that_computes_says_what_its_tasks_are_at() -> None:
    """In Python functions, or in which method of Java; a lock in there counts first."""
    python = ThreadSeen(
        "Executor task launch worker for task 0.0 in stage 0.0 (TID 0)",
        (
            "sun.nio.ch.EPoll.wait",
            "org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.read",
            "org.apache.spark.sql.execution.python.BasePythonUDFRunner$$anon$2.read",
        ),
    )
    query = Seen("t", stream(*COMPUTING, lock=LATCH), sets(t=(4, 1, 2)), [python])
    shared = "Spark computes its batch: 2 of its Spark tasks run, 1 wait"
    assert told(query) == f"{shared}, in Python functions of its query"
    jdbc = python._replace(frames=("java.net.Socket.read", "org.postgresql.jdbc.PgStatement.execute"))
    assert told(query._replace(executors=[jdbc])) == f"{shared}, in PgStatement.execute"
    assert told(query._replace(executors=())) == shared
    locked = jdbc._replace(lock="org.postgresql.Driver", owner="Thread-3")
    assert told(query._replace(executors=[locked])) == (
        "a Spark task of it waits for a lock that thread Thread-3 has (org.postgresql.Driver,"
        " in PgStatement.execute)"
    )


def test_a_batch_in_python_is_told_by_its_innermost_step() -> None:
    """The user's function, or the sink; a library below either says nothing to anybody."""
    called = stream(*CALLED_BACK)
    users = "it runs code of the user, in herd_rules.tasks.flights.put, line 12"
    assert told(Seen("t", called, python=USER)) == users
    library = PythonFrame("requests.api", "get", 3)
    assert told(Seen("t", called, python=(library, *USER))) == users
    assert told(Seen("t", called, python=SINK)) == (
        "it writes into its sink, in worker.sinks.database.Database.transaction"
    )
    assert told(Seen("t", called, python=(SINK[2], *USER))).startswith("it writes into its sink")
    assert told(Seen("t", called, python=BASE)) == (
        "it is in worker.spark.batches.batch_gate.through_gate.gated"
    )


def test_what_python_waits_for_in_java_is_told_with_its_step() -> None:
    """Its call comes back into the query's thread."""
    seen = Seen("t", stream(*LOCKED, *CALLED_BACK, lock=LOCK, owner="Thread-3"), python=USER)
    assert told(seen).startswith("it waits for a lock that thread Thread-3 has")
    assert told(seen).endswith("; it runs code of the user, in herd_rules.tasks.flights.put, line 12")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (
            (
                "java.lang.Object.wait",
                "org.apache.kafka.clients.admin.KafkaAdminClient.listOffsets",
                f"{RUNTIME}.MicroBatchExecution.$anonfun$constructNextBatch$4",
            ),
            "it asks its source what there is, in KafkaAdminClient.listOffsets",
        ),
        (
            (
                "java.io.FileOutputStream.write",
                "org.apache.hadoop.fs.RawLocalFileSystem.create",
                f"{RUNTIME}.MicroBatchExecution.markMicroBatchStart",
            ),
            "it keeps its checkpoint, in RawLocalFileSystem.create",
        ),
        (
            ("org.apache.spark.sql.delta.files.DeltaSink.addBatch", *BATCH),
            "it writes into its sink, in DeltaSink.addBatch",
        ),
        (
            ("org.apache.spark.sql.Planner.plan", *BATCH),
            "it does its batch, in Planner.plan",
        ),
        (("java.lang.Thread.sleep",), "it runs"),
    ],
)
def test_a_query_in_java_is_told_by_spark_s_own_steps(frames: tuple[str, ...], words: str) -> None:
    """And the innermost method that says something."""
    assert told(Seen("t", stream(*frames))) == words


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "java.base@17.0.15/jdk.internal.misc.Unsafe.park(Native Method)",
            "jdk.internal.misc.Unsafe.park",
        ),
        (
            "app//org.apache.spark.SparkContext.runJob(SparkContext.scala:2496)",
            "org.apache.spark.SparkContext.runJob",
        ),
        (
            "org.apache.spark.sql.catalyst.expressions.GeneratedClass.next(Unknown Source)",
            "org.apache.spark.sql.catalyst.expressions.GeneratedClass.next",
        ),
        ("app//scala.Function$$Lambda$1892/0x00007ff301bb6208.apply(Unknown Source)", None),
    ],
)
def test_a_frame_is_read_without_its_module_and_line(text: str, name: str | None) -> None:
    """What Java makes up for a lambda says nothing."""
    assert frame_of(text) == name
