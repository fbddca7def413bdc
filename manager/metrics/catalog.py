"""Every metric of a manager. `docs/monitoring.md` has the same table, held by a test."""

from __future__ import annotations

from telemetry.loop_lag import LOOP_LAG
from telemetry.metrics import Metric

REQUESTS = Metric(
    "sparkherd_requests_total",
    "counter",
    "Requests that a group has answered: joins, heartbeats, reports, admins'; by the code of the answer.",
    ("operation", "code"),
)
PARKED = Metric("sparkherd_parked_requests", "gauge", "Requests that wait for their answers.")
PUT_OFF = Metric(
    "sparkherd_requests_put_off",
    "gauge",
    "Requests that wait for a later pass of the event loop, as more have come at once than one is to take.",
)
STALE_TOKENS = Metric(
    "sparkherd_stale_tokens_total",
    "counter",
    "Tasks in reports and releases that were refused with STALE_TOKEN: a zombie's.",
    ("operation",),
)
REBALANCES = Metric(
    "sparkherd_rebalances_total",
    "counter",
    "Rebalances, by what they began with: "
    "join, leave, removed, lost (a worker), tasks (their set changed), pace (more of what was to move), "
    "drain, admin, restored, other.",
    ("group", "cause"),
)
REBALANCE_SECONDS = Metric(
    "sparkherd_rebalance_seconds",
    "histogram",
    "From the first to the last moment of a rebalance: the group's assignment, or the next rebalance.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
TASKS_MOVED = Metric(
    "sparkherd_tasks_moved_total", "counter", "Tasks that a rebalance gave to another worker.", ("group",)
)
MEMBERS_GONE = Metric(
    "sparkherd_members_gone_total",
    "counter",
    "Members that went: left (in order), lost (silent), removed (by an admin), "
    "replaced (a static one by its next process).",
    ("group", "how"),
)
GROUP_STATE = Metric(
    "sparkherd_group_state", "gauge", "1 for the state that the group is in.", ("group", "state")
)
GENERATION = Metric("sparkherd_group_generation", "gauge", "The group's generation.", ("group",))
MEMBERS = Metric(
    "sparkherd_group_members",
    "gauge",
    "Members: active, draining, parked (their join or sync waits), awaited (by the rebalance).",
    ("group", "state"),
)
TASKS = Metric("sparkherd_group_tasks", "gauge", "Tasks, by their state.", ("group", "state"))
TASKS_TO_COME = Metric(
    "sparkherd_group_tasks_to_come", "gauge", "Tasks that are still to move, a few at a time.", ("group",)
)
ALARMS_FIRING = Metric(
    "sparkherd_group_alarms_firing",
    "gauge",
    "Alarms that fire, silenced and acknowledged ones included.",
    ("group", "severity"),
)
HERD_ALARMS_FIRING = Metric(
    "sparkherd_herd_alarms_firing",
    "gauge",
    "Alarms of managers and of the database that fire, on the manager that looks at these and only there.",
    ("severity",),
)
TRANSFERRING = Metric(
    "sparkherd_group_transferring_tasks",
    "gauge",
    "Tasks of the group on their way into another one, by the step of their transfer.",
    ("group", "step"),
)
TRANSFER_SINCE = Metric(
    "sparkherd_group_transfer_step_since_seconds",
    "gauge",
    "Since when (in seconds since 1970) the task is at its step that is there longest; "
    "none while the group gives no task away.",
    ("group",),
)
COMMIT_SECONDS = Metric(
    "sparkherd_storage_commit_seconds",
    "histogram",
    "How long the storage took for a transaction, failed ones included.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
COMMIT_FAILURES = Metric(
    "sparkherd_storage_commit_failures_total", "counter", "Transactions that the storage failed."
)
COMMITTED_ROWS = Metric(
    "sparkherd_storage_rows_total", "counter", "Rows written or deleted by transactions that succeeded."
)
STORAGE_UP = Metric(
    "sparkherd_storage_up", "gauge", "1 while the storage does what it is asked to, 0 while it does not."
)
LEASE_CHANGES = Metric(
    "sparkherd_lease_changes_total",
    "counter",
    "Slots that came to this manager or left it: taken, handed_over, lost (to another one, or to silence).",
    ("change",),
)
ALARM_MESSAGES = Metric(
    "sparkherd_alarm_messages_total",
    "counter",
    "Messages to receivers of alarms: taken, refused (tried again), given_up (it would never be taken).",
    ("receiver", "result"),
)
RECEIVER_AWAY = Metric(
    "sparkherd_alarm_receiver_away",
    "gauge",
    "1 while a receiver of alarms that this manager tells, or one of its addresses, has taken nothing for "
    "five minutes, else 0.",
    ("receiver",),
)
BUGS = Metric(
    "sparkherd_unexpected_errors_total",
    "counter",
    "Rules of groups that raised, which is a bug; the log has a line and a trace of each.",
)

CATALOG = (
    REQUESTS,
    PARKED,
    PUT_OFF,
    STALE_TOKENS,
    REBALANCES,
    REBALANCE_SECONDS,
    TASKS_MOVED,
    MEMBERS_GONE,
    GROUP_STATE,
    GENERATION,
    MEMBERS,
    TASKS,
    TASKS_TO_COME,
    ALARMS_FIRING,
    HERD_ALARMS_FIRING,
    TRANSFERRING,
    TRANSFER_SINCE,
    COMMIT_SECONDS,
    COMMIT_FAILURES,
    COMMITTED_ROWS,
    STORAGE_UP,
    LEASE_CHANGES,
    ALARM_MESSAGES,
    RECEIVER_AWAY,
    BUGS,
    LOOP_LAG,
)
