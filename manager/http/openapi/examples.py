"""An example of each body, for the API's description; tests read every one as the manager would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.error_meanings import MEANINGS
from protocol.errors import ErrorCode, Failure
from protocol.messages import (
    alarm_receivers,
    alarms,
    assignors,
    audit,
    checks,
    cluster,
    events,
    groups,
    history,
    membership,
    offsets,
    ownership,
    quarantine,
    sinks,
    tasks,
    transfers,
)
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

ME: Final = "w1-6f1f7a2e-0d4c-4a37-9f0f-3a4b5c6d7e8f"
OTHER: Final = "w2-0b9c8d7e-6f5a-4b3c-8d2e-1f0a9b8c7d6e"
GROUP: Final = "flights"
TASK: Final = "delays"
NOW_MS: Final = 1_790_000_000_000
DONE: Final = {"error": "NONE"}

DEFINITION: Final = {
    "source": {
        "format": "json",
        "schema": "carrier STRING, dep_delay DOUBLE",
        "options": {"path": "/data/flights", "maxFilesPerTrigger": 1},
    },
    "sql": "SELECT carrier, dep_delay FROM source WHERE dep_delay > 0",
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "delays"}},
    "trigger": {"processing_time": "1 second"},
}
METADATA: Final = {"owned": {TASK: 7}, "capacity": 1.0, "labels": {}, "url": None, "tasks_revision": 12}
CHECK: Final = "5d0a4c1e-7b26-4f3c-9a65-0c2d4e6f8a1b"
CHECKED: Final = {
    "problems": [{"path": "sink.options.table", "message": "the table delays has no column dep_delay"}],
    "notes": [],
    "columns": [{"name": "carrier", "type": "string"}, {"name": "dep_delay", "type": "double"}],
    "rows": [["UA", 2.0], ["B6", 4.5]],
}
TRANSFER: Final = {
    "id": "move-1",
    "from": GROUP,
    "to": "arrivals",
    "step": "STOPPED",
    "started_at_ms": NOW_MS,
    "changed_at_ms": NOW_MS + 900,
    "by": "anybody",
    "cause": None,
    "tasks": [{"task": TASK, "to_task": "late", "step": "STOPPED"}],
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
ASSIGNMENT: Final = {"tasks": [TASK]}
ALARM_RULE: Final = {
    "name": "lag",
    "kind": "lag_seconds",
    "severity": "warning",
    "enabled": True,
    "groups": "*",
    "tasks": "flights-*",
    "labels": {"team": "*"},
    "threshold": 600.0,
    "clear_threshold": 300.0,
    "for_ms": 300_000,
    "clear_after_ms": 120_000,
    "window_ms": 600_000,
    "floor_ms": 300_000,
    "repeat_every_ms": 14_400_000,
    "receivers": ["ops"],
}
SILENCED: Final = {
    "ends_at_ms": NOW_MS + 3_600_000,
    "reason": "the brokers are upgraded",
    "by": "ann",
    "rules": "lag",
    "groups": GROUP,
    "tasks": "*",
}
SILENCE: Final = {"id": "9c2f4e6a8b01", "created_at_ms": NOW_MS, **SILENCED}
MANAGER: Final = {"id": "127.0.0.1:8470", "url": "http://127.0.0.1:8470"}
MEMBER: Final = {"member_id": ME, "instance_id": None}
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
RESOURCES: Final = {
    "heap_bytes": 412_000_000,
    "heap_max_bytes": 1_073_741_824,
    "heap_after_gc_bytes": 175_563_264,
    "heap_live_bytes": 167_174_656,
    "gc_ms": 4310,
    "gc_share": 0.012,
    "direct_bytes": 16_842_752,
    "python_processes": 3,
    "python_bytes": 310_000_000,
    "checkpoint_bytes": 2_400_000,
    "checkpoint_free_bytes": 80_000_000_000,
    "checkpoint_disk_bytes": 250_000_000_000,
    "loop_lag_ms": 3,
}
HEAP_RISE: Final = {
    "since_ms": NOW_MS,
    "over_ms": 1_200_000,
    "from_bytes": 210_000_000,
    "to_bytes": 640_000_000,
    "candidates": 2,
    "tasks": [TASK, "rides"],
}
STATUS: Final = {
    "task": TASK,
    "state": "RUNNING",
    "target": "RUNNING",
    "owner": ME,
    "token": 7,
    "generation_id": 3,
    "batch_id": 41,
    "metrics": {"inputRowsPerSecond": 120.5},
    "cause": None,
    "since_ms": NOW_MS,
    "restart_count": 0,
    "assigned_to": ME,
    "reset": None,
    "lag": None,
    "quarantined": False,
    "heap_suspicion": None,
    "home": None,
    "transfer": None,
}
VIEW: Final = {**STATUS, "definition": DEFINITION, "definition_version": 2}

EXAMPLES: Final[Mapping[type[msgspec.Struct], Mapping[str, Any]]] = {
    Response: DONE,
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
    groups.CoordinatorResponse: {**DONE, "group": GROUP, "coordinator": MANAGER},
    groups.GroupListResponse: {
        **DONE,
        "groups": [
            {
                "group": GROUP,
                "state": "Stable",
                "protocol_type": "sparkherd",
                "generation_id": 3,
                "members": 2,
                "tasks": 12,
            }
        ],
    },
    assignors.AssignorListResponse: {
        **DONE,
        "groups": [
            {
                "group": GROUP,
                "protocol_type": "sparkherd",
                "members": 2,
                "assignors": [
                    {"assignor": "sticky", "members": 2, "is_candidate": True, "is_chosen": True},
                    {"assignor": "range", "members": 1, "is_candidate": False, "is_chosen": False},
                ],
            }
        ],
        "next": None,
    },
    sinks.SinkListResponse: {
        **DONE,
        "sinks": [
            {
                "format": "ledger",
                "about": "Rows as text in a file of SQLite",
                "needs": "ledger",
                "output_modes": ["append", "update", "complete"],
                "table": False,
                "partition_by": False,
                "schema_evolution": False,
                "options": {
                    "title": "LedgerOptions",
                    "type": "object",
                    "properties": {"path": {"type": "string", "description": "the file"}},
                    "required": ["path"],
                    "additionalProperties": False,
                },
                "trouble": None,
            }
        ],
    },
    groups.DescribeGroupResponse: {
        **DONE,
        "group": GROUP,
        "state": "Stable",
        "generation_id": 3,
        "protocol_type": "sparkherd",
        "protocol_name": "sticky",
        "leader_id": ME,
        "members": [
            {
                **MEMBER,
                "client_id": "w1",
                "host": "127.0.0.1",
                "metadata": METADATA,
                "assignment": ASSIGNMENT,
                "session_timeout_ms": 10_000,
                "last_heartbeat_ms": NOW_MS,
                "draining": False,
                "resources": RESOURCES,
                "heap_rise": HEAP_RISE,
            }
        ],
        "tasks": 12,
        "tasks_revision": 12,
    },
    groups.RebalanceRequest: {"reason": "after the upgrade"},
    groups.RebalanceListResponse: {
        **DONE,
        "rebalances": [
            {
                "generation_id": 3,
                "reason": "a member joined",
                "started_at_ms": NOW_MS,
                "duration_ms": 12,
                "members": 2,
                "moved": 6,
            }
        ],
        "history": [{"at_ms": NOW_MS, "generation_id": 3, "event": "AwaitingSync -> Stable"}],
    },
    history.MovesResponse: {
        **DONE,
        "since_ms": None,
        "moves": [{"at_ms": NOW_MS, "task": TASK, "left": OTHER, "joined": ME}],
    },
    alarms.TaskAlarmsResponse: {
        **DONE,
        "task": TASK,
        "known": True,
        "alarms": [
            {
                "rule": "behind",
                "kind": "lag_rows",
                "severity": "warning",
                "state": "firing",
                "value": 120500.0,
                "threshold": 100000.0,
                "unit": "rows",
                "since_ms": NOW_MS,
                "acknowledged_by": None,
                "silenced": False,
                "receivers": ["ops"],
            }
        ],
    },
    history.TaskHistoryResponse: {
        **DONE,
        "task": TASK,
        "since_ms": None,
        "interval_ms": 10_000,
        "points": [{"at_ms": NOW_MS, "rows": 1205.0, "batches": 10, "batch_ms": 310.0, "lag": 1200}],
        "history": [
            {
                "at_ms": NOW_MS,
                "generation_id": 3,
                "state": "RUNNING",
                "owner": ME,
                "token": 7,
                "cause": None,
                "group": None,
                "task": None,
            }
        ],
    },
    tasks.CreateTaskRequest: {"task": TASK, "definition": DEFINITION, "target": "RUNNING"},
    tasks.PutTaskRequest: {"definition": DEFINITION, "target": "PAUSED"},
    tasks.PutTasksRequest: {
        "tasks": [
            {
                "task": TASK,
                "definition": DEFINITION,
                "target": None,
                "if_match": None,
                "if_none_match": None,
            }
        ],
        "delete": ["rides"],
        "validate_only": False,
    },
    tasks.PutTasksResponse: {
        **DONE,
        "tasks": [
            {"task": TASK, "result": "changed", "etag": '"5f3a77b02c11"', "definition_version": 2},
            {"task": "rides", "result": "deleted", "etag": None, "definition_version": None},
        ],
        "tasks_revision": 12,
        "etag": '"c02b117f3a55"',
    },
    tasks.ValidateTaskRequest: {"definition": {**DEFINITION, "output_mod": "append"}},
    tasks.ValidateTaskResponse: {
        **DONE,
        "problems": [{"path": "output_mod", "message": "unknown key; did you mean output_mode?"}],
    },
    tasks.ResetTaskRequest: {"offsets": "earliest"},
    tasks.ResetTaskResponse: {
        **DONE,
        "task": TASK,
        "token": 8,
        "reset": {"number": 8, "offsets": "earliest"},
        "meaning": "Everything that the source still has is read again.",
    },
    tasks.TaskStatusResponse: {**DONE, **STATUS},
    tasks.TaskResponse: {**DONE, **VIEW},
    tasks.TaskListResponse: {**DONE, "tasks": [VIEW], "tasks_revision": 12, "etag": '"c02b117f3a55"'},
    transfers.StartTransferRequest: {
        "from": GROUP,
        "to": "arrivals",
        "tasks": [TASK],
        "rename": {TASK: "late"},
        "id": "move-1",
    },
    transfers.TransferResponse: {**DONE, **TRANSFER},
    transfers.TransferListResponse: {**DONE, "transfers": [TRANSFER]},
    alarms.PutAlarmRulesRequest: {"rules": [ALARM_RULE], "validate_only": False, "if_match": '"4"'},
    alarms.AlarmRulesResponse: {**DONE, "rules": [ALARM_RULE], "version": 4, "etag": '"4"'},
    alarms.SilenceRequest: SILENCED,
    alarms.SilenceResponse: {**DONE, "silence": SILENCE},
    alarms.SilenceListResponse: {**DONE, "silences": [SILENCE]},
    alarms.AlarmListResponse: {
        **DONE,
        "alarms": [
            {
                "group": GROUP,
                "rule": "lag",
                "kind": "lag_seconds",
                "severity": "warning",
                "state": "firing",
                "since_ms": NOW_MS,
                "task": TASK,
                "member": None,
                "manager": None,
                "worker": ME,
                "value": 1260.0,
                "threshold": 600.0,
                "fired_at_ms": NOW_MS + 300_000,
                "told_at_ms": NOW_MS + 300_000,
                "resolved_at_ms": None,
                "acknowledged_by": "ann",
                "acknowledged_at_ms": NOW_MS + 360_000,
                "silenced": False,
                "receivers": ["ops"],
            }
        ],
        "total": 1,
        "next": None,
    },
    alarms.AcknowledgeRequest: {"rule": "lag", "by": "ann", "task": TASK, "member": None},
    alarms.AcknowledgeHerdRequest: {"rule": "manager-gone", "by": "ann", "manager": "10.0.0.7:8470"},
    alarms.AcknowledgeResponse: {**DONE, "acknowledged": 1},
    alarm_receivers.AlarmReceiverListResponse: {
        **DONE,
        "receivers": [
            {
                "name": "ops",
                "kind": "email",
                "fallback": True,
                "state": "delivering",
                "since_ms": NOW_MS,
                "last_error": None,
            },
            {
                "name": "chat",
                "kind": "slack",
                "fallback": False,
                "state": "away",
                "since_ms": NOW_MS,
                "last_error": "HTTP 503",
            },
        ],
    },
    alarm_receivers.ReceiverTestResponse: {**DONE, "delivered": False, "reason": "HTTP 404"},
    audit.AuditListResponse: {
        **DONE,
        "entries": [
            {
                "id": 9,
                "at_ms": NOW_MS,
                "who": "me",
                "operation": "pauseTask",
                "result": "NONE",
                "token_id": "5f3a77b02c11",
                "group": GROUP,
                "task": TASK,
                "status": 202,
                "host": "192.0.2.7",
                "manager": "192.0.2.1:8470",
            }
        ],
        "next": None,
    },
    events.EventListResponse: {
        **DONE,
        "events": [
            {
                "id": 17,
                "at_ms": NOW_MS,
                "type": "task.failed",
                "group": GROUP,
                "task": TASK,
                "member": ME,
                "cause": "the path does not exist",
            }
        ],
        "last_id": 17,
    },
    cluster.ManagerListResponse: {
        **DONE,
        "managers": [{**MANAGER, "alive": True, "slots": 64, "lease_left_ms": 2500, "started_at_ms": NOW_MS}],
        "slots": [{"slot": 0, "epoch": 1, "manager": MANAGER["id"]}],
    },
}

_FIELDS: Final[Mapping[ErrorCode, dict[str, Any]]] = {
    ErrorCode.MEMBER_ID_REQUIRED: {"member_id": ME},
    ErrorCode.NOT_COORDINATOR: {"coordinator": MANAGER},
    ErrorCode.PAYLOAD_TOO_LARGE: {"limit_bytes": 8_388_608},
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: {"retry_after_s": 1},
    ErrorCode.UNKNOWN_SERVER_ERROR: {"cause_id": "9f3c2a71"},
}


def example_of(code: ErrorCode, fields: Mapping[str, object]) -> dict[str, Any]:
    """A refusal with that code; `fields` are what every error of the endpoint carries."""
    return Failure(code, MEANINGS[code], {**fields, **_FIELDS.get(code, {})}).body()
