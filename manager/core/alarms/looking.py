"""One look at one task or worker: what its alarms come to, and what is to be told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.alarms.alarms import Key
from manager.core.alarms.findings import SUBJECTS_TOLD, Finding, subject_of, task_of
from manager.core.alarms.life import OK, Verdict, is_due_again, look
from manager.core.stored_rows import AlarmRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.alarms.alarms import GroupAlarms, Pass
    from manager.core.alarms.facts import Reading
    from manager.core.alarms.life import Moment
    from protocol.messages.alarms import AlarmRule

    Causes = Callable[[], tuple[str, ...]]


class Look:
    """Takes the readings of one group's pass in; what is found is in the pass."""

    def __init__(self, group: str, alarms: GroupAlarms, under_way: Pass, at: Moment) -> None:
        self._group = group
        self._alarms = alarms
        self._pass = under_way
        self._at = at

    def take(
        self, rule: AlarmRule, subject: str, reading: Reading, worker: str | None, causes: Causes
    ) -> None:
        """What a rule has read of a subject, owned by `worker`; `causes` are asked for if they are told."""
        alarms = self._alarms
        is_ok = reading.value is None or reading.value <= (rule.threshold or 0.0)
        if is_ok and not alarms.standings and not alarms.firing:
            return  # nearly always, and a pass may look at a million of these
        key = Key(rule.name, subject)
        if is_ok and key not in alarms.standings and key not in alarms.firing:
            return
        self._pass.looked_at.add(key)
        before = alarms.standing(key)
        standing, verdict = look(rule, reading, before, self._at)
        alarms.stand(key, standing)
        self._note_value(key, reading)
        if verdict is Verdict.FIRES:
            self._fires(self._new_row(rule, subject, reading, before.pending_since, worker), causes)
        elif verdict is Verdict.RESOLVES:
            self.resolve(alarms.firing[key])
        elif standing.is_firing:
            self._goes_on(rule, alarms.firing[key], causes)

    def resolve(self, row: AlarmRow) -> None:
        """An alarm is over; whoever was told of it is told that."""
        over = msgspec.structs.replace(row, resolved_at_ms=max(self._at.wall_ms, row.fired_at_ms))
        self._add(Finding.RESOLVES, over, lambda: (), is_audible=bool(row.told_at_ms))

    def _note_value(self, key: Key, reading: Reading) -> None:
        if reading.value is None or self._alarms.standing(key) is OK:
            self._alarms.values.pop(key, None)
        else:
            self._alarms.values[key] = reading.value

    def _new_row(
        self, rule: AlarmRule, subject: str, reading: Reading, pending_since: int | None, worker: str | None
    ) -> AlarmRow:
        at = self._at
        pended_ms = 0 if pending_since is None else at.now - pending_since
        since_ms = at.wall_ms - pended_ms if reading.since_ms is None else reading.since_ms
        return AlarmRow(
            group=self._group,
            rule=rule.name,
            subject=subject,
            fired_at_ms=at.wall_ms,
            kind=rule.kind.value,
            severity=rule.severity.value,
            since_ms=since_ms,
            value=reading.value if rule.threshold is not None else None,
            threshold=rule.threshold,
            worker=worker,
            receivers=rule.receivers,
        )

    def _fires(self, row: AlarmRow, causes: Causes) -> None:
        """Nobody is told of one that is silenced; it fires all the same."""
        is_audible = not self._is_silenced(row)
        told_at_ms = self._at.wall_ms if is_audible else 0
        told = msgspec.structs.replace(row, told_at_ms=told_at_ms)
        self._add(Finding.FIRES, told, causes, is_audible=is_audible)

    def _goes_on(self, rule: AlarmRule, row: AlarmRow, causes: Causes) -> None:
        """It is told again when it is time; one that was silenced until now is told for the first time."""
        if row.acknowledged_at_ms or not self._is_due(rule, row) or self._is_silenced(row):
            return
        finding = Finding.REPEATS if row.told_at_ms else Finding.FIRES
        told = msgspec.structs.replace(row, told_at_ms=self._at.wall_ms)
        self._add(finding, told, causes, is_audible=True)

    def _is_due(self, rule: AlarmRule, row: AlarmRow) -> bool:
        return not row.told_at_ms or is_due_again(rule, row.told_at_ms, self._at.wall_ms)

    def _is_silenced(self, row: AlarmRow) -> bool:
        book, wall_ms = self._pass.book, self._at.wall_ms
        return book.is_silenced(row.rule, self._group, task_of(row.subject), wall_ms)

    def _add(self, finding: Finding, row: AlarmRow, causes: Causes, *, is_audible: bool) -> None:
        batch = self._pass.findings.batch(finding, row)
        batch.rows.append(row)
        if not is_audible:
            return
        batch.audible += 1
        if len(batch.subjects) < SUBJECTS_TOLD:
            batch.subjects.append(subject_of(row, causes()))
