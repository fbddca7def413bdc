"""Rules of alarms as a manager keeps up with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from manager.background.herd_alarms import HerdAlarms
from manager.storage.alarm_table import RULES, Versioned
from protocol.default_alarm_rules import DEFAULT_RULES
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
        cast("AlarmTable", table), cast("HerdTable", None), lambda rules, _: used.append(rules)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(alarms.read())
        await turn()
        table.present = Versioned(2, DEFAULT_RULES[:2])
        group.create_task(alarms.read())
        await settle()
        table.gate.set()
    assert used[-1] == DEFAULT_RULES[:2]
