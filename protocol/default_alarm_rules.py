"""Rules to begin with, which `sparkherd alarms init` prints; none is in force before it is applied."""

from __future__ import annotations

from typing import Final

from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import AlarmRule

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

DEFAULT_RULES: Final = (
    AlarmRule(
        name="failed",
        kind=AlarmKind.FAILED,
        severity=Severity.CRITICAL,
        for_ms=30 * SECOND,
        clear_after_ms=MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="restarting",
        kind=AlarmKind.RESTARTING,
        threshold=5,
        clear_threshold=1,
        window_ms=10 * MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="unassigned",
        kind=AlarmKind.UNASSIGNED,
        severity=Severity.CRITICAL,
        for_ms=5 * MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="state-mismatch",
        kind=AlarmKind.STATE_MISMATCH,
        for_ms=10 * MINUTE,
        clear_after_ms=MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="lag",
        kind=AlarmKind.LAG_SECONDS,
        threshold=600,
        clear_threshold=300,
        for_ms=5 * MINUTE,
        clear_after_ms=2 * MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="stuck",
        kind=AlarmKind.STUCK,
        severity=Severity.CRITICAL,
        threshold=900,
        for_ms=MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
    AlarmRule(
        name="silent",
        kind=AlarmKind.SILENT,
        threshold=5,
        floor_ms=15 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="quarantine",
        kind=AlarmKind.QUARANTINE,
        threshold=100,
        clear_threshold=0,
        window_ms=10 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="state-growing",
        kind=AlarmKind.STATE_GROWING,
        threshold=1 << 30,
        window_ms=HOUR,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="worker-overloaded",
        kind=AlarmKind.WORKER_OVERLOADED,
        threshold=1,
        clear_threshold=0.9,
        for_ms=15 * MINUTE,
        clear_after_ms=5 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="worker-heap",
        kind=AlarmKind.WORKER_HEAP,
        threshold=90,
        clear_threshold=80,
        for_ms=10 * MINUTE,
        clear_after_ms=5 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="manager-gone",
        kind=AlarmKind.MANAGER_GONE,
        for_ms=MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="manager-loop-lag",
        kind=AlarmKind.MANAGER_LOOP_LAG,
        threshold=1,
        clear_threshold=0.5,
        for_ms=MINUTE,
        clear_after_ms=2 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="manager-memory",
        kind=AlarmKind.MANAGER_MEMORY,
        threshold=85,
        clear_threshold=75,
        for_ms=5 * MINUTE,
        clear_after_ms=5 * MINUTE,
        repeat_every_ms=24 * HOUR,
    ),
    AlarmRule(
        name="database-failing",
        kind=AlarmKind.DATABASE_FAILING,
        severity=Severity.CRITICAL,
        threshold=20,
        clear_threshold=5,
        window_ms=MINUTE,
        for_ms=MINUTE,
        clear_after_ms=MINUTE,
        repeat_every_ms=HOUR,
    ),
    AlarmRule(
        name="database-slow",
        kind=AlarmKind.DATABASE_SLOW,
        threshold=1,
        clear_threshold=0.5,
        window_ms=MINUTE,
        for_ms=5 * MINUTE,
        clear_after_ms=2 * MINUTE,
        repeat_every_ms=4 * HOUR,
    ),
)
"""They name no receivers: whoever applies them says whom to tell."""
