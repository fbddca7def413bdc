"""What each kind of alarm of tasks looks at."""

from __future__ import annotations

from typing import Any

import pytest

from manager.core.alarms.facts import CLEAR, UNKNOWN, Reading, Restarts
from manager.core.alarms.seen import GAPS_NEEDED, TaskSeen
from manager.core.alarms.task_conditions import CONDITIONS, read
from protocol.alarm_kinds import TRAITS, About, AlarmKind
from protocol.states import Target, TaskState
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, behind, facts, rule

STOPPED = {"target": Target.STOPPED, "state": TaskState.STOPPED}


@pytest.mark.parametrize(
    ("kind", "known", "expected"),
    [
        (AlarmKind.LAG_ROWS, {"lag": behind(7)}, Reading(7.0)),
        (AlarmKind.LAG_ROWS, {"metrics": {"lag": {"offsets": 9}}}, Reading(9.0)),
        (AlarmKind.LAG_ROWS, {}, UNKNOWN),
        (AlarmKind.LAG_ROWS, {"lag": behind(7), **STOPPED}, CLEAR),
        (AlarmKind.LAG_SECONDS, {"lag": behind(7, 4500)}, Reading(4.5)),
        (AlarmKind.LAG_SECONDS, {"lag": behind(7)}, UNKNOWN),
        (AlarmKind.LAG_SECONDS, {"lag": behind(7, 4500), **STOPPED}, CLEAR),
        (AlarmKind.FAILED, {"state": TaskState.FAILED}, Reading(1.0, WALL)),
        (AlarmKind.FAILED, {"is_quarantined": True, "state": TaskState.UNASSIGNED}, Reading(1.0, WALL)),
        (AlarmKind.FAILED, {"state": TaskState.STARTING}, UNKNOWN),
        (AlarmKind.FAILED, {"state": TaskState.RESTARTING}, UNKNOWN),
        (AlarmKind.FAILED, {}, CLEAR),
        (AlarmKind.RESTARTING, {"restarts": lambda _: Restarts(3, is_all=True)}, Reading(3.0)),
        (
            AlarmKind.RESTARTING,
            {"restarts": lambda _: Restarts(3, is_all=False)},
            Reading(3.0, at_least=True),
        ),
        (AlarmKind.STATE_MISMATCH, {}, CLEAR),
        (AlarmKind.STATE_MISMATCH, {"state": TaskState.STARTING}, Reading(1.0)),
        (AlarmKind.STATE_MISMATCH, {"target": Target.PAUSED}, Reading(1.0)),
        (AlarmKind.STATE_MISMATCH, {"target": Target.STOPPED}, Reading(1.0)),
        (AlarmKind.STATE_MISMATCH, {"state": TaskState.FAILED}, CLEAR),
        (AlarmKind.STATE_MISMATCH, {"state": TaskState.UNASSIGNED, "owner": None}, CLEAR),
        (AlarmKind.UNASSIGNED, {"state": TaskState.UNASSIGNED, "owner": None}, Reading(1.0, WALL)),
        (AlarmKind.UNASSIGNED, {"state": TaskState.FAILED, "owner": None}, Reading(1.0)),
        (
            AlarmKind.UNASSIGNED,
            {"state": TaskState.UNASSIGNED, "owner": None, "target": Target.STOPPED},
            CLEAR,
        ),
        (AlarmKind.UNASSIGNED, {"state": TaskState.COMPLETED, "owner": None}, CLEAR),
        (AlarmKind.UNASSIGNED, {"state": TaskState.FAILED, "owner": None, "is_quarantined": True}, CLEAR),
        (AlarmKind.UNASSIGNED, {}, CLEAR),
        (AlarmKind.STATE_SIZE, {"metrics": {"state": {"bytes": 5, "memory_bytes": 9}}}, Reading(5.0)),
        (AlarmKind.STATE_SIZE, {"metrics": {"state": {"memory_bytes": 9}}}, Reading(9.0)),
        (AlarmKind.STATE_SIZE, {"metrics": {}}, UNKNOWN),
        (AlarmKind.STUCK, STOPPED, CLEAR),
        (AlarmKind.STUCK, {"state": TaskState.STARTING}, UNKNOWN),
        (AlarmKind.STUCK, {}, UNKNOWN),
        (AlarmKind.SILENT, STOPPED, CLEAR),
        (AlarmKind.SILENT, {"state": TaskState.STARTING}, UNKNOWN),
        (AlarmKind.SILENT, {}, UNKNOWN),
    ],
)
def test_what_is_read_at_once(kind: AlarmKind, known: dict[str, Any], expected: Reading) -> None:
    """Of a task that nothing is remembered of."""
    assert read(rule(kind, threshold=1), facts(**known), TaskSeen(), 0, WALL) == expected


def test_every_kind_of_tasks_has_a_condition() -> None:
    """None is left out, and none is there that is about workers."""
    assert CONDITIONS.keys() == {kind for kind, traits in TRAITS.items() if traits.about is About.TASK}


class Watched:
    """A task that is looked at every ten seconds."""

    def __init__(self, kind: AlarmKind, **fields: Any) -> None:
        self.rule = rule(kind, **({"threshold": 1} | fields))
        self.seen = TaskSeen()
        self.now = 0

    def look(self, ms: int = 10_000, **known: Any) -> Reading:
        """Time goes by, and then the task is so."""
        self.now += ms
        told = facts(**known)
        self.seen.look(told, self.now)
        return read(self.rule, told, self.seen, self.now, WALL + self.now)


def test_a_task_with_input_and_no_batch_is_stuck() -> None:
    """By the time since its last batch; until one was seen that is the least it can be."""
    task = Watched(AlarmKind.STUCK)
    task.look(batch_id=4, lag=behind(9))
    assert task.look(30_000, batch_id=4, lag=behind(9)) == Reading(30.0, at_least=True)
    assert task.look(batch_id=5, lag=behind(9)) == Reading(0.0)
    assert task.look(20_000, batch_id=5, lag=behind(9)) == Reading(20.0)


def test_a_task_without_input_is_not_stuck() -> None:
    """However long it waits; without any word on input nobody knows, unless a batch came a moment ago."""
    task = Watched(AlarmKind.STUCK)
    task.look(batch_id=4)
    assert task.look(MINUTE, batch_id=4, lag=behind(0)) == CLEAR
    assert task.look(MINUTE, batch_id=4, metrics={"lag": {"files": 0}}) == CLEAR
    assert task.look(MINUTE, batch_id=4) == UNKNOWN
    assert task.look(batch_id=5) == CLEAR


def test_a_task_that_moved_is_given_time() -> None:
    """Under another token the time begins anew."""
    task = Watched(AlarmKind.STUCK)
    task.look(batch_id=4, lag=behind(9))
    task.look(batch_id=5, lag=behind(9))
    assert task.look(MINUTE, batch_id=5, lag=behind(9), token=2) == Reading(0.0, at_least=True)


def rows(total: int) -> dict[str, Any]:
    return {"total_rows": total}


def test_silence_is_measured_by_the_usual_gap() -> None:
    """The longest of the last gaps is what is usual; before the floor there is no silence."""
    task = Watched(AlarmKind.SILENT, floor_ms=5 * MINUTE)
    for total in range(GAPS_NEEDED + 2):
        assert task.look(MINUTE, metrics=rows(total)) == (UNKNOWN if total == 0 else CLEAR)
    assert task.look(5 * MINUTE - 1, metrics=rows(total)) == CLEAR
    assert task.look(1, metrics=rows(total)) == Reading(5.0)
    assert task.look(MINUTE, metrics=rows(total)) == Reading(6.0)
    assert task.look(metrics=rows(total + 1)) == CLEAR


def test_what_is_usual_has_to_be_learned() -> None:
    """After too few gaps nobody knows whether a silence is one."""
    task = Watched(AlarmKind.SILENT, floor_ms=MINUTE)
    for total in range(GAPS_NEEDED + 1):
        task.look(MINUTE, metrics=rows(total))
    assert task.look(60 * MINUTE, metrics=rows(total)) == UNKNOWN


def test_rows_put_aside_are_counted_within_the_window() -> None:
    """What the owner had counted before anybody looked does not count, a new owner counts from 0."""
    task = Watched(AlarmKind.QUARANTINE, window_ms=10 * MINUTE)
    assert task.look(metrics={"quarantined": 50}) == Reading(0.0, at_least=True)
    assert task.look(MINUTE, metrics={"quarantined": 53}) == Reading(3.0, at_least=True)
    assert task.look(MINUTE, metrics={"quarantined": 2}) == Reading(5.0, at_least=True)
    assert task.look(8 * MINUTE, metrics={"quarantined": 2}) == Reading(5.0)
    assert task.look(10 * MINUTE, metrics={"quarantined": 2}) == Reading(0.0)


def test_a_state_grows_by_what_it_gained_within_the_window() -> None:
    """One that shrinks has gained nothing, and what is not told changes nothing."""
    task = Watched(AlarmKind.STATE_GROWING, window_ms=10 * MINUTE)
    assert task.look() == Reading(None, at_least=True)
    assert task.look(metrics={"state": {"bytes": 100}}) == Reading(0.0, at_least=True)
    assert task.look(10 * MINUTE, metrics={"state": {"bytes": 700}}) == Reading(600.0)
    assert task.look(MINUTE, metrics={"state": {"bytes": 80}}) == Reading(0.0)
