"""Tasks as admins define, steer and move them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.http.openapi.example_values import (
    DEFINITION,
    DONE,
    GROUP,
    ME,
    NOW_MS,
    OTHER,
    STATUS,
    TASK,
)
from protocol.messages import (
    assignors,
    history,
    sinks,
    tasks,
    transfers,
)

if TYPE_CHECKING:
    from manager.http.openapi.example_values import Examples

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
VIEW: Final = {**STATUS, "definition": DEFINITION, "definition_version": 2}

EXAMPLES: Final[Examples] = {
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
    history.MovesResponse: {
        **DONE,
        "since_ms": None,
        "moves": [{"at_ms": NOW_MS, "task": TASK, "left": OTHER, "joined": ME}],
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
}
