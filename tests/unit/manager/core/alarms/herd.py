"""Managers that tell of themselves every five seconds, and the one that looks, on a simulated clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.alarms.findings import Finding, manager_of
from manager.core.alarms.herd_facts import Attendance, HerdFacts, ManagerFacts, ManagerFigures
from manager.core.alarms.herd_watch import HerdWatch
from manager.core.alarms.life import Moment
from tests.unit.manager.core.alarms.looks import WALL

if TYPE_CHECKING:
    from manager.core.alarms.book import AlarmBook
    from manager.core.stored_rows import AlarmRow

STEP_MS: Final = 5000
ORDINARY: Final = ManagerFigures(loop_lag_s=0.01, memory_percent=10.0)


@dataclass
class ManagerDouble:
    """One of them; `told_at` is when it told of itself last, None before it has."""

    id: str
    incarnation: int = 1
    told_at: int | None = None
    figures: ManagerFigures = ORDINARY
    attendance: Attendance = field(default_factory=Attendance)
    watch: HerdWatch = field(default_factory=HerdWatch)

    def transact(self, count: int, failed: int = 0, seconds_each: float = 0.01) -> None:
        """It has tried so many transactions more."""
        before = self.figures
        self.figures = msgspec.structs.replace(
            before,
            transactions=before.transactions + count,
            failed=before.failed + failed,
            seconds=before.seconds + count * seconds_each,
        )

    def restarted(self) -> ManagerDouble:
        """Another process of its id, which remembers nothing; its row is there."""
        fresh = replace(self, incarnation=self.incarnation + 1, figures=ManagerFigures())
        fresh.attendance, fresh.watch = Attendance(), HerdWatch()
        return fresh


class HerdDouble:
    """What is stored of all managers; `told` counts what was told of which subject."""

    def __init__(self, book: AlarmBook, *names: str) -> None:
        self.book = book
        self.now = 0
        self.managers = {name: ManagerDouble(name) for name in names}
        self.rows: dict[str, ManagerDouble] = {}
        self.firing: dict[tuple[str, str], AlarmRow] = {}
        self.told: Counter[tuple[str, str, str | None]] = Counter()

    def step(self, *, store: bool = True) -> None:
        """Five seconds later all that live tell of themselves; the first of them looks at all."""
        self.now += STEP_MS
        knows = {}
        for manager in self.managers.values():
            manager.transact(5)
            gap = None if manager.told_at is None else self.now - manager.told_at
            manager.told_at = self.now
            self.rows[manager.id] = manager
            knows[manager.id] = manager.attendance.told(self.now, gap)
        if self.managers:
            first = min(self.managers)
            self.look(self.managers[first], knows_silence=knows[first], store=store)

    def steps(self, seconds: int) -> None:
        """For so long."""
        for _ in range(seconds * 1000 // STEP_MS):
            self.step()

    def look(self, by: ManagerDouble, *, knows_silence: bool, store: bool) -> None:
        """One of them looks; unless it can `store` that, nobody hears of it."""
        at = Moment(self.now, WALL + self.now)
        looked = by.watch.look(self.book, [*self.firing.values()], self.facts(knows=knows_silence), at)
        if not store and looked.batches:
            return
        by.watch.accept(looked)
        for batch in looked.batches:
            for row in batch.rows:
                key = row.rule, row.subject
                if batch.finding is Finding.RESOLVES:
                    del self.firing[key]
                else:
                    self.firing[key] = row
                self.told[batch.finding.value, row.rule, manager_of(row.subject)] += bool(batch.audible)

    def facts(self, *, knows: bool) -> HerdFacts:
        """As the table has it."""
        managers = [
            ManagerFacts(
                each.id,
                f"{each.id}-{each.incarnation}",
                f"http://{each.id}",
                self.now - (each.told_at or 0),
                each.figures,
            )
            for each in self.rows.values()
        ]
        return HerdFacts(managers, knows)

    def kill(self, name: str) -> ManagerDouble:
        """It does nothing any more."""
        return self.managers.pop(name)

    def leave(self, name: str) -> ManagerDouble:
        """It ends in order."""
        del self.rows[name]
        return self.managers.pop(name)

    def start(self, manager: ManagerDouble) -> None:
        """It is there again."""
        self.managers[manager.id] = manager.restarted()
