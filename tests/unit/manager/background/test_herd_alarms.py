"""Rules of alarms as a manager keeps up with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from structlog.testing import capture_logs

from manager.background.herd_alarms import HerdAlarms
from manager.storage.alarm_table import RULES, Versioned
from manager.storage.stored_rules import UnreadRule
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import UnreadAlarmRule
from tests.fakes.turns import settle, turn

if TYPE_CHECKING:
    from manager.storage.alarm_table import AlarmTable
    from manager.storage.herd_table import HerdTable
    from protocol.messages.alarms import AlarmRule


class SlowTable:
    """A table whose first answer is long under way, while the rules are replaced."""

    def __init__(self) -> None:
        self.present = Versioned(1, DEFAULT_RULES[:1])
        self.gate = asyncio.Event()
        self._is_first = True

    async def versions(self) -> dict[str, int]:
        return {RULES: self.present.version}

    async def rules(self) -> Versioned[AlarmRule]:
        found = self.present
        if self._is_first:
            self._is_first = False
            await self.gate.wait()
        return found

    async def silences(self) -> Versioned[AlarmRule]:
        return Versioned(0, ())


async def test_an_earlier_look_does_not_replace_what_a_later_one_has_found() -> None:
    """Whoever has changed rules reads them at once, while the look of each second is under way."""
    table = SlowTable()
    used: list[tuple[AlarmRule, ...]] = []
    alarms = HerdAlarms(
        cast("AlarmTable", table), cast("HerdTable", None), lambda rules, *_: used.append(rules)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(alarms.read())
        await turn()
        table.present = Versioned(2, DEFAULT_RULES[:2])
        group.create_task(alarms.read())
        await settle()
        table.gate.set()
    assert used[-1] == DEFAULT_RULES[:2]


async def test_a_rule_that_cannot_be_read_is_told_once() -> None:
    """In the log, whatever else changes; and those that look at groups hear its name."""
    table = SlowTable()
    table.gate.set()
    unread = UnreadRule(UnreadAlarmRule("newer", "k", "kind: Invalid enum value 'k'"), 0, b"{}")
    used: list[frozenset[str]] = []
    alarms = HerdAlarms(
        cast("AlarmTable", table), cast("HerdTable", None), lambda _, __, names: used.append(names)
    )
    with capture_logs() as logs:
        for version in (1, 2):
            table.present = Versioned(version, DEFAULT_RULES[:version], (unread,))
            await alarms.read()
    assert used == [frozenset({"newer"})] * 2
    assert alarms.known == (DEFAULT_RULES[:2], (), frozenset({"newer"}))
    assert [(line["rule"], line["kind"], line["why"]) for line in logs] == [
        ("newer", "k", "kind: Invalid enum value 'k'")
    ]
