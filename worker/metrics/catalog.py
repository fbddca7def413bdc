"""Every metric of a worker. `docs/monitoring.md` has the same table, held by a test."""

from __future__ import annotations

from telemetry.loop_lag import LOOP_LAG
from telemetry.metrics import Metric

GROUP = ("group",)
TASK = ("group", "task")

REQUESTS = Metric(
    "sparkherd_worker_requests_total",
    "counter",
    "Requests to the manager, by the code of the answer; COORDINATOR_NOT_AVAILABLE without any answer, too.",
    ("group", "operation", "code"),
)
STALE_TOKENS = Metric(
    "sparkherd_worker_stale_tokens_total",
    "counter",
    "Tasks that the manager refused with STALE_TOKEN: they belonged to somebody else by then.",
    ("group", "operation"),
)
FENCED_WRITES = Metric(
    "sparkherd_worker_fenced_writes_total",
    "counter",
    "Queries that a sink refused because a newer owner had raised its fence.",
    GROUP,
)
LOSSES = Metric(
    "sparkherd_worker_losses_total",
    "counter",
    "Times that the worker lost its tasks at once: its lease ran out, or the group had removed it.",
    GROUP,
)
STATE = Metric(
    "sparkherd_worker_state", "gauge", "1 for the state that the membership is in.", ("group", "state")
)
MEMBER = Metric(
    "sparkherd_worker_info",
    "gauge",
    "1, with the id that the group knows the worker by.",
    ("group", "member"),
)
GENERATION = Metric(
    "sparkherd_worker_generation", "gauge", "The generation it is a member of, -1 outside.", GROUP
)
LEASE = Metric(
    "sparkherd_worker_lease_seconds",
    "gauge",
    "How long the worker may still write without another word from the manager; 0 when it may not.",
    GROUP,
)
TASKS = Metric("sparkherd_worker_tasks", "gauge", "Tasks that the worker has, by state.", ("group", "state"))
TASK_STATE = Metric(
    "sparkherd_task_state", "gauge", "1 for the state that the task is in.", ("group", "task", "state")
)
TOKEN = Metric("sparkherd_task_token", "gauge", "The fencing token that the task is owned under.", TASK)
ROWS = Metric("sparkherd_task_rows_total", "counter", "Rows read since this worker has the task.", TASK)
BATCHES = Metric(
    "sparkherd_task_batches_total", "counter", "Batches finished since this worker has the task.", TASK
)
BATCH_SECONDS = Metric(
    "sparkherd_task_batch_seconds_total", "counter", "Time that those batches took, by Spark's word.", TASK
)
DROPPED = Metric(
    "sparkherd_task_dropped_rows_total",
    "counter",
    "Rows that were left out for good since this worker has the task; only of tasks that may leave rows out.",
    TASK,
)
QUARANTINED = Metric(
    "sparkherd_task_quarantined_rows_total",
    "counter",
    "Rows that were put aside since this worker has the task; only of tasks that may leave rows out.",
    TASK,
)
LEFT_OUT = Metric(
    "sparkherd_task_left_out_rows_total",
    "counter",
    "The rows of both by the expectation that they violate, or as unreadable or refused; one that violates "
    "two counts for both.",
    ("group", "task", "reason"),
)
PHASES = Metric(
    "sparkherd_task_phase_seconds_total",
    "counter",
    "The same by phase: planning, reading (asking sources what there is), writing (rows are read, computed "
    "and written as one), commit (Spark's own logs).",
    ("group", "task", "phase"),
)
LATE_BATCHES = Metric(
    "sparkherd_task_late_batches_total",
    "counter",
    "Batches that took longer than the interval of their trigger; only of tasks that have one.",
    TASK,
)
LATE_ROWS = Metric(
    "sparkherd_task_late_rows_total",
    "counter",
    "Rows that Spark dropped because they were older than the watermark, by its own count; only of tasks "
    "with state and a watermark.",
    TASK,
)
SPILLED = Metric(
    "sparkherd_task_spilled_bytes_total",
    "counter",
    "Bytes that shuffles, sorts and aggregations wrote to disk for want of memory; not behind Spark Connect.",
    TASK,
)
STATE_ROWS = Metric(
    "sparkherd_task_state_rows", "gauge", "Rows in the state of its query after the last batch.", TASK
)
STATE_BYTES = Metric(
    "sparkherd_task_state_bytes",
    "gauge",
    "How large that state is, as its store has it: in memory, or RocksDB's files.",
    TASK,
)
STATE_MEMORY = Metric(
    "sparkherd_task_state_memory_bytes",
    "gauge",
    "Memory that the state takes, with the versions of it that Spark keeps.",
    TASK,
)
WATERMARK = Metric(
    "sparkherd_task_watermark_seconds",
    "gauge",
    "The watermark that the last batch ran under, in seconds since 1970.",
    TASK,
)
WATERMARK_LAG = Metric(
    "sparkherd_task_watermark_lag_seconds",
    "gauge",
    "How far that was behind the beginning of the batch.",
    TASK,
)
LAST_BATCH = Metric("sparkherd_task_last_batch_seconds", "gauge", "How long the last batch took.", TASK)
IDLE = Metric(
    "sparkherd_task_idle_seconds",
    "gauge",
    "Since the last batch was finished, or the query was started.",
    TASK,
)
HAS_WORK = Metric(
    "sparkherd_task_has_data",
    "gauge",
    "1 while there is data: a batch of it is being done, or the source was ahead of the last batch.",
    TASK,
)
LAG = Metric(
    "sparkherd_task_source_lag",
    "gauge",
    "How far the source was ahead when the last batch was planned, in offsets, files or bytes; "
    "only of sources that tell Spark.",
    ("group", "task", "unit"),
)
BEHIND = Metric(
    "sparkherd_task_lag_rows",
    "gauge",
    "Rows of Kafka's topics behind the last finished batch, by the brokers' word; told without a query, too. "
    "Partitions that no broker answers for are not counted.",
    TASK,
)
BEHIND_SECONDS = Metric(
    "sparkherd_task_lag_seconds", "gauge", "How old the first row is that was not read yet.", TASK
)
BEHIND_PARTITION = Metric(
    "sparkherd_task_partition_lag_rows",
    "gauge",
    "The same by topic and partition; of the 200 partitions of a task that are furthest behind.",
    ("group", "task", "topic", "partition"),
)
LOST_ROWS = Metric(
    "sparkherd_task_lost_rows",
    "gauge",
    "Rows that the task has not read and that the topic no longer has.",
    TASK,
)
KAFKA_REQUESTS = Metric(
    "sparkherd_worker_kafka_requests_total",
    "counter",
    "Questions to Kafka's brokers beside those of Spark's queries: for the lag, before a start, whether they "
    "answer at all, and of consumer groups; by whether there was an answer.",
    ("group", "purpose", "answered"),
)
HEAP = Metric(
    "sparkherd_worker_heap_bytes", "gauge", "Heap of the worker's JVM in use; not of Spark Connect's.", GROUP
)
HEAP_MAX = Metric("sparkherd_worker_heap_max_bytes", "gauge", "What that heap may grow to.", GROUP)
HEAP_AFTER_GC = Metric(
    "sparkherd_worker_heap_after_gc_bytes",
    "gauge",
    "What was in use of it right after the last collection of garbage.",
    GROUP,
)
HEAP_LIVE = Metric(
    "sparkherd_worker_heap_live_bytes",
    "gauge",
    "What the last collection of its old generation left there; not of a worker with a JVM for each task.",
    GROUP,
)
GC_SECONDS = Metric(
    "sparkherd_worker_gc_seconds_total",
    "counter",
    "Time that collections of garbage took in that JVM.",
    GROUP,
)
DIRECT = Metric(
    "sparkherd_worker_direct_bytes", "gauge", "Direct memory of that JVM, which is beside its heap.", GROUP
)
PYTHON_PROCESSES = Metric(
    "sparkherd_worker_python_processes",
    "gauge",
    "Processes of Python that Spark has started, as for functions of a user's.",
    GROUP,
)
PYTHON_BYTES = Metric(
    "sparkherd_worker_python_bytes",
    "gauge",
    "Memory that they have; what they share counts for each.",
    GROUP,
)
CHECKPOINT_BYTES = Metric(
    "sparkherd_worker_checkpoint_bytes",
    "gauge",
    "What the checkpoints of the group take on a disk of this machine, looked at every minute.",
    GROUP,
)
CHECKPOINT_FREE = Metric(
    "sparkherd_worker_checkpoint_free_bytes", "gauge", "What is free on that disk.", GROUP
)
CHECKPOINT_DISK = Metric("sparkherd_worker_checkpoint_disk_bytes", "gauge", "How large that disk is.", GROUP)
RESTARTS = Metric(
    "sparkherd_task_restarts_total",
    "counter",
    "Restarts after failures since this worker has the task; those for an outage are not among them.",
    TASK,
)
OUTAGES = Metric(
    "sparkherd_task_outages_total",
    "counter",
    "Restarts because only what the query needs was out of reach, such as brokers that do not answer.",
    TASK,
)

CATALOG = (
    REQUESTS,
    STALE_TOKENS,
    FENCED_WRITES,
    LOSSES,
    STATE,
    MEMBER,
    GENERATION,
    LEASE,
    TASKS,
    TASK_STATE,
    TOKEN,
    ROWS,
    BATCHES,
    BATCH_SECONDS,
    PHASES,
    LATE_BATCHES,
    LATE_ROWS,
    SPILLED,
    STATE_ROWS,
    STATE_BYTES,
    STATE_MEMORY,
    WATERMARK,
    WATERMARK_LAG,
    DROPPED,
    QUARANTINED,
    LEFT_OUT,
    LAST_BATCH,
    IDLE,
    HAS_WORK,
    LAG,
    BEHIND,
    BEHIND_SECONDS,
    BEHIND_PARTITION,
    LOST_ROWS,
    RESTARTS,
    OUTAGES,
    KAFKA_REQUESTS,
    HEAP,
    HEAP_MAX,
    HEAP_AFTER_GC,
    HEAP_LIVE,
    GC_SECONDS,
    DIRECT,
    PYTHON_PROCESSES,
    PYTHON_BYTES,
    CHECKPOINT_BYTES,
    CHECKPOINT_FREE,
    CHECKPOINT_DISK,
    LOOP_LAG,
)
