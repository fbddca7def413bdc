"""What each error code means, as protocol §2.2 and `/openapi.json` say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode as Code

if TYPE_CHECKING:
    from collections.abc import Mapping

MEANINGS: Final[Mapping[Code, str]] = {
    Code.NONE: "no error; every answer carries `error`",
    Code.INVALID_REQUEST: (
        "not JSON, a field that is missing or of the wrong type; the message names it. Of definitions and "
        'offsets, `problems` = `[{"path", "message"}]` has all faults'
    ),
    Code.INVALID_GROUP_ID: "a group id is 1 to 249 characters of `[A-Za-z0-9._-]`, not `.` or `..`",
    Code.INVALID_SESSION_TIMEOUT: (
        "outside the manager's `--min-session-timeout-ms` and `--max-session-timeout-ms`"
    ),
    Code.INCONSISTENT_GROUP_PROTOCOL: (
        "another protocol type than the group's, or no assignor that all members support: give the workers of"
        " a group one in common"
    ),
    Code.MEMBER_ID_REQUIRED: (
        "the first join of a dynamic member: join again with the `member_id` of the answer"
    ),
    Code.UNKNOWN_MEMBER_ID: (
        "the member was removed, its session ended, or its id was not joined with in time: join as a new one"
    ),
    Code.FENCED_INSTANCE_ID: (
        "another process joined under this instance id: two workers share one `--instance-id`"
    ),
    Code.ILLEGAL_GENERATION: "of a generation that is over: join again; what was owned is lost",
    Code.REBALANCE_IN_PROGRESS: "join again, and go on with what is owned",
    Code.GROUP_MAX_SIZE_REACHED: "`--group-max-size` members are there already",
    Code.GROUP_ID_NOT_FOUND: "no such group",
    Code.NON_EMPTY_GROUP: "only a group without members can be deleted: stop the workers first",
    Code.OFFSET_METADATA_TOO_LARGE: (
        "of one key of a commit: its text is longer than `--offset-metadata-max-bytes`"
    ),
    Code.UNKNOWN_TASK: "no such task",
    Code.TASK_EXISTS: "`tasks create` never changes a task; `tasks apply` does",
    Code.TASK_UNDER_TRANSFER: (
        "the task is on its way into another group, or out of one: cancel the transfer, or wait for its end"
    ),
    Code.TASK_TRANSFERRED: (
        "the task is another group's: its transfer is beyond the point of no return. Transfer it back, or"
        " leave it out here; `tasks create` makes another one of that name, which begins at the beginning"
    ),
    Code.UNKNOWN_TRANSFER: "no such transfer, or one that was over long ago",
    Code.PRECONDITION_FAILED: (
        "the task, or the group's list of tasks, is not as `If-Match` or `If-None-Match` has it: look at it "
        "again; `etag` is what it has now; in a list, `problems` name each task whose own condition is not "
        "met"
    ),
    Code.STALE_TOKEN: "the task has another owner by now: the worker stops that query",
    Code.NOT_ASSIGNED: "a claim of a task that the present assignment gives to somebody else",
    Code.INVALID_ASSIGNMENT: (
        "the assignor named an unknown task, or one twice; the message lists the first faults"
    ),
    Code.NOT_CHECKABLE: "what an entry point would do can only be found out by running it",
    Code.NO_ELIGIBLE_WORKER: (
        "no worker of the group can do a check of that definition, or the task's is of a version that knows "
        "nothing of quarantined rows; the message says what they lack"
    ),
    Code.TOO_MANY_CHECKS: (
        "every worker that could do the check is doing one already, or the group has too many"
    ),
    Code.UNKNOWN_CHECK: "a check that is over, whatever became of it: the worker drops it",
    Code.CHECK_INTERRUPTED: (
        "the worker that was doing the check has left the group, was lost or replaced, or has lost its Spark"
    ),
    Code.CHECK_TIMED_OUT: "the worker was not done within `timeout_ms`; the message says what it waited for",
    Code.NO_QUARANTINE: "the task's definition puts no rows aside: it has no quarantine that could be asked",
    Code.TASK_NOT_OWNED: (
        "no worker has the task now, or not any more, and only its owner reaches its quarantine; the message "
        "says what to do. Nothing was done"
    ),
    Code.QUARANTINE_BUSY: (
        "the task's worker is at another request about quarantined rows, or the group has too many"
    ),
    Code.UNKNOWN_QUARANTINE_REQUEST: "a request that is over, whatever became of it: the worker drops it",
    Code.UNKNOWN_ROW: "the task's quarantine has no row of that id: played again, discarded, or never there",
    Code.QUARANTINE_FAILED: (
        "the worker could not do it; the message says why. A replay or discard may be done in part"
    ),
    Code.QUARANTINE_INTERRUPTED: (
        "the worker has left the group, was lost or replaced, has lost the task, or what it needs is out of "
        "reach. A replay or discard may be done in part: look at what is left, and ask again"
    ),
    Code.QUARANTINE_TIMED_OUT: (
        "the worker was not done within `timeout_ms`; the message says what it waited for. A replay or "
        "discard may still be done: look at what is left, and ask again"
    ),
    Code.NOT_FOUND: "nothing is at that path",
    Code.METHOD_NOT_ALLOWED: "the path takes other methods, which `Allow` lists",
    Code.NOT_COORDINATOR: "another manager has the group: `coordinator` says which",
    Code.COORDINATOR_NOT_AVAILABLE: (
        "the manager stops, or its database is away, or more requests wait than it can keep, or nobody has "
        "the group at the moment, or a row of the group cannot be read: the message names it. What was to "
        "be changed may have been changed all the same, unless there is `was_sent: false`: then the manager "
        "that has the group was not reached"
    ),
    Code.COORDINATOR_LOAD_IN_PROGRESS: "the group is being read from the database",
    Code.UNAUTHENTICATED: "no token, or one that is not known",
    Code.GROUP_AUTHORIZATION_FAILED: "the token's role, or its groups, do not allow this",
    Code.PAYLOAD_TOO_LARGE: "the body is larger than `--max-request-bytes`, which `limit_bytes` says",
    Code.THROTTLING_QUOTA_EXCEEDED: (
        "more requests than `--client-rate` allows one client; `Retry-After` and `retry_after_s` say when to "
        "come back. A member meets it only with a token that does not let it in, and tries again"
    ),
    Code.UNKNOWN_SERVER_ERROR: "a bug: `cause_id` is in the manager's log, with the trace",
}
