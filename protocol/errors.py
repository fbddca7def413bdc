"""Error codes as data: each code carries its HTTP status and whether a retry can help (protocol §2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

import msgspec

RETRY_AFTER_S = 1


class ErrorCode(StrEnum):
    """Every code a response may carry.

    `status` is its HTTP status, `retriable` whether the same request may succeed later.
    """

    status: int
    retriable: bool

    def __new__(cls, name: str, status: int, retry: str = "final") -> Self:
        """One row of the table below."""
        code = str.__new__(cls, name)
        code._value_ = name
        code.status = status
        code.retriable = retry == "retriable"
        return code

    NONE = "NONE", 200
    INVALID_REQUEST = "INVALID_REQUEST", 400
    INVALID_GROUP_ID = "INVALID_GROUP_ID", 400
    INVALID_SESSION_TIMEOUT = "INVALID_SESSION_TIMEOUT", 400
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL", 409
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED", 428, "retriable"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID", 404
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID", 409
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION", 409
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS", 409, "retriable"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED", 409
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND", 404
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP", 409
    OFFSET_METADATA_TOO_LARGE = "OFFSET_METADATA_TOO_LARGE", 400
    UNKNOWN_TASK = "UNKNOWN_TASK", 404
    TASK_EXISTS = "TASK_EXISTS", 409
    TASK_UNDER_TRANSFER = "TASK_UNDER_TRANSFER", 409, "retriable"
    TASK_TRANSFERRED = "TASK_TRANSFERRED", 409
    UNKNOWN_TRANSFER = "UNKNOWN_TRANSFER", 404
    PRECONDITION_FAILED = "PRECONDITION_FAILED", 412
    STALE_TOKEN = "STALE_TOKEN", 409
    NOT_ASSIGNED = "NOT_ASSIGNED", 409
    INVALID_ASSIGNMENT = "INVALID_ASSIGNMENT", 409
    NOT_CHECKABLE = "NOT_CHECKABLE", 409
    NO_ELIGIBLE_WORKER = "NO_ELIGIBLE_WORKER", 409
    TOO_MANY_CHECKS = "TOO_MANY_CHECKS", 409, "retriable"
    UNKNOWN_CHECK = "UNKNOWN_CHECK", 404
    CHECK_INTERRUPTED = "CHECK_INTERRUPTED", 409, "retriable"
    CHECK_TIMED_OUT = "CHECK_TIMED_OUT", 504
    NO_QUARANTINE = "NO_QUARANTINE", 409
    TASK_NOT_OWNED = "TASK_NOT_OWNED", 409, "retriable"
    QUARANTINE_BUSY = "QUARANTINE_BUSY", 409, "retriable"
    UNKNOWN_QUARANTINE_REQUEST = "UNKNOWN_QUARANTINE_REQUEST", 404
    UNKNOWN_ROW = "UNKNOWN_ROW", 404
    QUARANTINE_FAILED = "QUARANTINE_FAILED", 409
    QUARANTINE_INTERRUPTED = "QUARANTINE_INTERRUPTED", 409, "retriable"
    QUARANTINE_TIMED_OUT = "QUARANTINE_TIMED_OUT", 504
    NOT_FOUND = "NOT_FOUND", 404
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED", 405
    NOT_COORDINATOR = "NOT_COORDINATOR", 421, "retriable"
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE", 503, "retriable"
    COORDINATOR_LOAD_IN_PROGRESS = "COORDINATOR_LOAD_IN_PROGRESS", 503, "retriable"
    UNAUTHENTICATED = "UNAUTHENTICATED", 401
    GROUP_AUTHORIZATION_FAILED = "GROUP_AUTHORIZATION_FAILED", 403
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE", 413
    THROTTLING_QUOTA_EXCEEDED = "THROTTLING_QUOTA_EXCEEDED", 429, "retriable"
    UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR", 500

    @classmethod
    def of(cls, name: object) -> ErrorCode:
        """The code called `name`; UNKNOWN_SERVER_ERROR for a name this version does not know."""
        return cls.__members__.get(str(name), cls.UNKNOWN_SERVER_ERROR)


class Failure(msgspec.Struct, frozen=True):
    """A refusal as a value: what the other side reads instead of a result.

    `code` is what a program acts on, `message` what a person reads, `fields` what the code
    names beside them (`member_id` of a refused join, `coordinator` of NOT_COORDINATOR, ...).
    """

    code: ErrorCode
    message: str
    fields: dict[str, Any] = msgspec.field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The error body of protocol §2.1."""
        return {
            "error": self.code.name,
            "message": self.message,
            "retriable": self.code.retriable,
            **self.fields,
        }


def unexpected(cause_id: str) -> Failure:
    """What is said of a bug: no more than an id, which the log has too."""
    message = f"a bug; the manager's log has more under {cause_id}"
    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message, {"cause_id": cause_id})


class RefusedError(Exception):
    """Raised where a request is taken apart and turns out to be wrong; carries what to answer."""

    def __init__(self, code: ErrorCode, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.failure = Failure(code, message, fields)


class StartupError(Exception):
    """A daemon cannot start; the text is one line that names what to change."""
