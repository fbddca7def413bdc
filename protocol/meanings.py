"""What each error code means, for people who read about the API (protocol §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode as Code

if TYPE_CHECKING:
    from collections.abc import Mapping

MEANINGS: Final[Mapping[Code, str]] = {
    Code.NONE: "it was done",
    Code.INVALID_REQUEST: "no JSON, a field missing or of the wrong type, an illegal name; the message says",
    Code.INVALID_GROUP_ID: "a group id is 1 to 249 characters of [A-Za-z0-9._-], not `.` or `..`",
    Code.INVALID_SESSION_TIMEOUT: "the session timeout is outside of the manager's bounds",
    Code.INCONSISTENT_GROUP_PROTOCOL: "another protocol type, no protocol, or none that all members have",
    Code.MEMBER_ID_REQUIRED: "a first join: join again with the `member_id` of this answer",
    Code.UNKNOWN_MEMBER_ID: "nobody in the group has this member id",
    Code.FENCED_INSTANCE_ID: "the instance id now belongs to another member id",
    Code.ILLEGAL_GENERATION: "not the present generation of the group",
    Code.REBALANCE_IN_PROGRESS: "the group gathers its members, or what is asked for is still under way",
    Code.GROUP_MAX_SIZE_REACHED: "the group is full",
    Code.GROUP_ID_NOT_FOUND: "there is no such group",
    Code.NON_EMPTY_GROUP: "the group still has members",
    Code.OFFSET_METADATA_TOO_LARGE: "the text beside an offset is too long",
    Code.UNKNOWN_TASK: "the group has no such task",
    Code.TASK_EXISTS: "the group has a task of that name already",
    Code.PRECONDITION_FAILED: "not as `If-Match` or `If-None-Match` has it; `etag` is the present one",
    Code.STALE_TOKEN: "a fencing token older than the task's present one",
    Code.NOT_ASSIGNED: "the present assignment gives the task to somebody else",
    Code.INVALID_ASSIGNMENT: "it names an unknown task, or one twice; the message lists the faults",
    Code.NOT_FOUND: "there is no such path",
    Code.METHOD_NOT_ALLOWED: "the path does not take this method; `Allow` has those that it takes",
    Code.NOT_COORDINATOR: "another manager has the group: `coordinator` names it, if it is known",
    Code.COORDINATOR_NOT_AVAILABLE: "the manager is stopping, has lost its database, or nobody has the group",
    Code.COORDINATOR_LOAD_IN_PROGRESS: "the group is being loaded",
    Code.UNAUTHENTICATED: "no token, or one that is not known",
    Code.GROUP_AUTHORIZATION_FAILED: "the token is not for this operation, or not for this group",
    Code.PAYLOAD_TOO_LARGE: "the body is larger than `--max-request-bytes`; `limit_bytes` says what that is",
    Code.THROTTLING_QUOTA_EXCEEDED: "more requests than one client may make: `Retry-After` is set",
    Code.UNKNOWN_SERVER_ERROR: "a bug: the log has more under `cause_id`",
}
