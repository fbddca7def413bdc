"""Groups, managers, events and alarms as admins see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.http.openapi.example_values import (
    ASSIGNMENT,
    DONE,
    GROUP,
    MANAGER,
    ME,
    MEMBER,
    METADATA,
    NOW_MS,
    TASK,
)
from protocol.messages import (
    alarm_receivers,
    alarms,
    audit,
    cluster,
    events,
    groups,
)

if TYPE_CHECKING:
    from manager.http.openapi.example_values import Examples

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

EXAMPLES: Final[Examples] = {
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
    alarms.PutAlarmRulesRequest: {"rules": [ALARM_RULE], "validate_only": False, "if_match": '"4"'},
    alarms.AlarmRulesResponse: {
        **DONE,
        "rules": [ALARM_RULE],
        "version": 4,
        "etag": '"4"',
        "unread": [{"name": "newer", "kind": "k", "why": "kind: Invalid enum value 'k'"}],
    },
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
