"""What members send of themselves and their tasks, and what they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.http.openapi.example_values import (
    ASSIGNMENT,
    DEFINITION,
    DONE,
    ME,
    MEMBER,
    METADATA,
    NOW_MS,
    OTHER,
    STATUS,
    TASK,
)
from protocol.messages import (
    checks,
    membership,
    offsets,
    ownership,
    quarantine,
)

if TYPE_CHECKING:
    from manager.http.openapi.example_values import Examples

CHECK: Final = "5d0a4c1e-7b26-4f3c-9a65-0c2d4e6f8a1b"
CHECKED: Final = {
    "problems": [{"path": "sink.options.table", "message": "the table delays has no column dep_delay"}],
    "notes": [],
    "columns": [{"name": "carrier", "type": "string"}, {"name": "dep_delay", "type": "double"}],
    "rows": [["UA", 2.0], ["B6", 4.5]],
}
QUARANTINED: Final = {
    "rows": [
        {
            "id": "0-41-3",
            "batch_id": 41,
            "token": 7,
            "at_ms": NOW_MS,
            "reason": "unreadable",
            "name": "MALFORMED_RECORD_IN_PARSING",
            "error": "the value is no JSON of its schema",
            "form": "kafka",
            "raw": '{"carrier": "UA", "dep_delay": "late"}',
            "encoding": "utf-8",
            "origin": {"topic": "delays", "partition": 2, "offset": 1034},
        }
    ],
    "total": 1,
    "replayed": 0,
    "discarded": 0,
    "stayed": 0,
    "notes": [],
}
PRESENT: Final = {**MEMBER, "generation_id": 3}
LAG: Final = {
    "at_ms": NOW_MS,
    "rows": 1200,
    "behind_ms": 4300,
    "lost": 0,
    "partitions": [
        {
            "topic": "flights",
            "partition": 0,
            "committed": 8800,
            "end": 10000,
            "behind": 1200,
            "behind_ms": 4300,
            "lost": 0,
        }
    ],
    "left_out": 0,
    "unknown": 0,
    "trouble": None,
    "tasks_revision": 12,
}

EXAMPLES: Final[Examples] = {
    membership.JoinRequest: {
        **MEMBER,
        "client_id": "w1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "sparkherd",
        "protocols": [{"name": "sticky", "metadata": METADATA}],
        "reason": "started",
    },
    membership.JoinResponse: {
        **DONE,
        "generation_id": 3,
        "protocol_type": "sparkherd",
        "protocol_name": "sticky",
        "leader_id": ME,
        "member_id": ME,
        "skip_assignment": False,
        "members": [{**MEMBER, "metadata": METADATA}],
        "tasks": [{"task": TASK, "weight": 1.0, "worker": None, "labels": {}, "load": None}],
    },
    membership.OfferRequest: {**PRESENT, "after": TASK},
    membership.OfferResponse: {
        **DONE,
        "tasks": [{"task": "rides", "weight": 1.0, "worker": None, "labels": {}, "load": None}],
    },
    membership.SyncRequest: {
        **PRESENT,
        "protocol_type": "sparkherd",
        "protocol_name": "sticky",
        "assignments": [{"member_id": ME, "assignment": ASSIGNMENT}],
    },
    membership.SyncResponse: {
        **DONE,
        "protocol_type": "sparkherd",
        "protocol_name": "sticky",
        "assignment": ASSIGNMENT,
    },
    membership.HeartbeatRequest: {**PRESENT, "wait_ms": 3000, "tasks_revision": 12},
    membership.HeartbeatResponse: {**DONE, "tasks_revision": 12},
    membership.LeaveRequest: {
        "members": [{**MEMBER, "reason": "stopped", "engine": None, "stopped": True, "out_of_memory": False}]
    },
    membership.LeaveResponse: {**DONE, "members": [{**MEMBER, "error": "NONE"}]},
    offsets.CommitOffsetsRequest: {**PRESENT, "offsets": {"topic-0": {"offset": 42, "metadata": ""}}},
    offsets.OffsetErrorsResponse: {**DONE, "offsets": {"topic-0": "NONE"}},
    offsets.FetchOffsetsRequest: {"keys": ["topic-0"]},
    offsets.FetchOffsetsResponse: {**DONE, "offsets": {"topic-0": {"offset": 42, "metadata": ""}}},
    offsets.DeleteOffsetsRequest: {"keys": ["topic-0"]},
    ownership.ClaimRequest: {**PRESENT, "tasks": [TASK, "rides"], "wait_ms": 3000, "prepare": 4},
    ownership.ClaimResponse: {
        **DONE,
        "granted": [
            {
                "task": TASK,
                "token": 7,
                "target": "RUNNING",
                "definition": DEFINITION,
                "definition_version": 2,
                "restart_count": 0,
                "reset": None,
                "reached": {"batch_id": 41, "checkpoint": "/shared/flights/delays", "member_id": OTHER},
                "home": None,
            }
        ],
        "pending": [{"task": "rides", "owner": OTHER, "definition": DEFINITION}],
        "refused": [],
        "tasks_revision": 12,
    },
    ownership.ReleaseRequest: {**MEMBER, "tasks": {TASK: 7}, "running": [TASK]},
    ownership.ReportRequest: {
        **MEMBER,
        "tasks": [
            {
                "task": TASK,
                "token": 7,
                "state": "RUNNING",
                "batch_id": 41,
                "committed": 38,
                "metrics": STATUS["metrics"],
                "cause": None,
                "checkpoint": "/shared/flights/delays",
                "lag": LAG,
                "quarantine": False,
                "tasks_revision": None,
            },
            {
                "task": "rides",
                "token": 5,
                "state": "FAILED",
                "batch_id": 12,
                "committed": None,
                "metrics": {"exceeded": {"state_rows": 1}},
                "cause": "limits.state_rows: its state has 20,000,001 rows, more than 20,000,000",
                "checkpoint": "/shared/flights/rides",
                "lag": None,
                "quarantine": True,
                "tasks_revision": 12,
            },
        ],
        "found": {"rides": 5},
    },
    ownership.LagRequest: {**MEMBER, "tasks": {"rides": LAG}},
    ownership.LagResponse: {
        **DONE,
        "tasks": [{"task": "rides", "definition": DEFINITION, "reset": None, "home": None}],
        "tasks_revision": 12,
    },
    checks.CheckRequest: {"definition": DEFINITION, "rows": 10, "begin": "beginning", "timeout_ms": 30_000},
    checks.CheckResponse: {**DONE, "worker": ME, **CHECKED},
    checks.FetchCheckRequest: {**MEMBER, "check": CHECK},
    checks.FetchCheckResponse: {
        **DONE,
        "definition": DEFINITION,
        "rows": 10,
        "begin": "beginning",
        "timeout_ms": 29_950,
    },
    checks.ReportCheckRequest: {**MEMBER, "check": CHECK, "result": CHECKED},
    quarantine.QuarantineChangeRequest: {"ids": ["0-41-3"], "timeout_ms": 60_000},
    quarantine.QuarantineResponse: {**DONE, "worker": ME, **QUARANTINED},
    quarantine.FetchQuarantineRequest: {**MEMBER, "quarantine": CHECK},
    quarantine.FetchQuarantineResponse: {
        **DONE,
        "task": TASK,
        "token": 7,
        "request": {
            "action": "list",
            "ids": [],
            "reason": "unreadable",
            "name": None,
            "limit": 20,
            "masked": True,
            "timeout_ms": 29_950,
        },
    },
    quarantine.ReportQuarantineRequest: {**MEMBER, "quarantine": CHECK, "result": QUARANTINED},
    ownership.TaskErrorsResponse: {**DONE, "tasks": {TASK: "NONE"}, "found": {"rides": "STALE_TOKEN"}},
}
