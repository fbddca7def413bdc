"""Rules and facts with what a test does not care about left at something ordinary."""

from __future__ import annotations

from typing import Any

from manager.core.alarms.facts import Restarts, TaskFacts
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarms import AlarmRule
from protocol.messages.lag import TaskLag
from protocol.states import Target, TaskState

MINUTE = 60_000
WALL = 1_800_000_000_000


def rule(kind: AlarmKind = AlarmKind.LAG_ROWS, **fields: Any) -> AlarmRule:
    """A rule called as its kind."""
    return AlarmRule(**({"name": kind.value, "kind": kind} | fields))


def facts(**fields: Any) -> TaskFacts:
    """A task that runs as it should."""
    ordinary: dict[str, Any] = {
        "target": Target.RUNNING,
        "state": TaskState.RUNNING,
        "state_since_ms": WALL,
        "owner": "w1",
        "token": 1,
        "is_quarantined": False,
        "batch_id": None,
        "metrics": None,
        "lag": None,
        "restarts": lambda _: Restarts(0, is_all=True),
    }
    return TaskFacts(**(ordinary | fields))


def behind(rows: int, ms: int | None = None) -> TaskLag:
    """A lag."""
    return TaskLag(at_ms=WALL, rows=rows, behind_ms=ms)
