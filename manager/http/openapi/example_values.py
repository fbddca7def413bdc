"""What several examples have in them: the names of a herd, its tasks and moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    Examples = Mapping[type[msgspec.Struct], Mapping[str, Any]]

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
ASSIGNMENT: Final = {"tasks": [TASK]}
MANAGER: Final = {"id": "127.0.0.1:8470", "url": "http://127.0.0.1:8470"}
MEMBER: Final = {"member_id": ME, "instance_id": None}
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
