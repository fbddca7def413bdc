"""What each kind of alarm of tasks looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core.alarms.facts import CLEAR, UNKNOWN, Reading
from protocol.alarm_kinds import AlarmKind
from protocol.states import Target, TaskState
from protocol.task_metrics import figure, figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.alarms.facts import TaskFacts
    from manager.core.alarms.seen import TaskSeen
    from protocol.messages.alarms import AlarmRule

    Condition = Callable[[AlarmRule, TaskFacts, TaskSeen, int, int], Reading]
    """Gets the moment on the monotonic clock and since 1970, both in milliseconds."""

AS_WANTED: Final = {
    Target.RUNNING: TaskState.RUNNING,
    Target.PAUSED: TaskState.PAUSED,
    Target.STOPPED: TaskState.STOPPED,
}
AT_AN_END: Final = frozenset({TaskState.FAILED, TaskState.COMPLETED})
BETWEEN: Final = frozenset({TaskState.UNASSIGNED, TaskState.STARTING, TaskState.RESTARTING})
"""On the way to another state, in which it shows whether the last trouble is over."""


def read(rule: AlarmRule, facts: TaskFacts, seen: TaskSeen, now: int, wall_ms: int) -> Reading:
    """What the rule's condition looks at; `seen` has taken `facts` in."""
    return CONDITIONS[rule.kind](rule, facts, seen, now, wall_ms)


def _lag_rows(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    if facts.target is not Target.RUNNING:
        return CLEAR
    return Reading(_rows_behind(facts))


def _rows_behind(facts: TaskFacts) -> float | None:
    """As its brokers say; of other sources what Spark has told with the last batch."""
    if facts.lag is not None and facts.lag.rows is not None:
        return float(facts.lag.rows)
    return figures(facts.metrics, "lag").get("offsets")


def _lag_seconds(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    if facts.target is not Target.RUNNING:
        return CLEAR
    behind_ms = facts.lag.behind_ms if facts.lag is not None else None
    return UNKNOWN if behind_ms is None else Reading(behind_ms / 1000)


def _stuck(_: AlarmRule, facts: TaskFacts, seen: TaskSeen, now: int, __: int) -> Reading:
    """Without input there is nothing to do; whether there is any may not be known."""
    if facts.target is not Target.RUNNING or facts.state is TaskState.COMPLETED:
        return CLEAR
    if facts.state is not TaskState.RUNNING:
        return UNKNOWN
    has_input = _has_input(facts)
    if has_input is False:
        return CLEAR
    waited_s = (now - seen.batch_at) / 1000
    if has_input is None:
        return CLEAR if seen.batch_seen and now - seen.batch_at < RECENT_MS else UNKNOWN
    return Reading(waited_s, at_least=not seen.batch_seen)


RECENT_MS: Final = 60_000
"""A batch that was finished so lately shows that a query is not stuck."""


def _has_input(facts: TaskFacts) -> bool | None:
    if facts.lag is not None and facts.lag.rows is not None:
        return facts.lag.rows > 0
    told = figures(facts.metrics, "lag")
    return any(told.values()) if told else None


def _silent(rule: AlarmRule, facts: TaskFacts, seen: TaskSeen, now: int, _: int) -> Reading:
    if facts.target is not Target.RUNNING or facts.state is TaskState.COMPLETED:
        return CLEAR
    if facts.state is not TaskState.RUNNING:
        return UNKNOWN
    silent_ms = now - seen.rows_at
    if seen.rows_seen and silent_ms < rule.floor_ms:
        return CLEAR
    usual_ms = seen.usual_gap_ms
    if usual_ms is None or silent_ms < rule.floor_ms:
        return UNKNOWN
    return Reading(silent_ms / max(usual_ms, 1), at_least=not seen.rows_seen)


def _failed(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    if facts.state is TaskState.FAILED or facts.is_quarantined:
        return Reading(1.0, facts.state_since_ms or None)
    return UNKNOWN if facts.state in BETWEEN else CLEAR


def _restarting(rule: AlarmRule, facts: TaskFacts, _: TaskSeen, __: int, ___: int) -> Reading:
    counted = facts.restarts(rule.window_ms)
    return Reading(float(counted.times), at_least=not counted.is_all)


def _state_mismatch(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    """Since when is not stored: its target may have changed long after its state did."""
    is_other = facts.owner is not None and facts.state is not AS_WANTED[facts.target]
    return Reading(1.0) if is_other and facts.state not in AT_AN_END else CLEAR


def _unassigned(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    is_wanted = facts.target is not Target.STOPPED and not facts.is_quarantined
    if not is_wanted or facts.owner is not None or facts.state is TaskState.COMPLETED:
        return CLEAR
    since_ms = facts.state_since_ms if facts.state is TaskState.UNASSIGNED else 0
    return Reading(1.0, since_ms or None)


def _quarantine(rule: AlarmRule, facts: TaskFacts, seen: TaskSeen, now: int, _: int) -> Reading:
    """Its owner counts anew, so a count that falls is that of another one."""
    return _gained(rule, seen, figure(facts.metrics, "quarantined"), now, restarts=True)


def _state_size(_: AlarmRule, facts: TaskFacts, __: TaskSeen, ___: int, ____: int) -> Reading:
    return Reading(_state_bytes(facts))


def _state_growing(rule: AlarmRule, facts: TaskFacts, seen: TaskSeen, now: int, _: int) -> Reading:
    return _gained(rule, seen, _state_bytes(facts), now, restarts=False)


def _state_bytes(facts: TaskFacts) -> float | None:
    state = figures(facts.metrics, "state")
    return state.get("bytes", state.get("memory_bytes"))


def _gained(rule: AlarmRule, seen: TaskSeen, value: float | None, now: int, *, restarts: bool) -> Reading:
    window = seen.window(rule.kind.value, rule.window_ms, restarts=restarts)
    if value is not None:
        window.take(value, now, rule.window_ms)
    return Reading(window.gained(), at_least=not window.is_whole(now, rule.window_ms))


CONDITIONS: Final[dict[AlarmKind, Condition]] = {
    AlarmKind.LAG_ROWS: _lag_rows,
    AlarmKind.LAG_SECONDS: _lag_seconds,
    AlarmKind.STUCK: _stuck,
    AlarmKind.SILENT: _silent,
    AlarmKind.FAILED: _failed,
    AlarmKind.RESTARTING: _restarting,
    AlarmKind.STATE_MISMATCH: _state_mismatch,
    AlarmKind.UNASSIGNED: _unassigned,
    AlarmKind.QUARANTINE: _quarantine,
    AlarmKind.STATE_SIZE: _state_size,
    AlarmKind.STATE_GROWING: _state_growing,
}
