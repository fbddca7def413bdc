"""Keeping up with the rules and silences of alarms in the database: a change by one counts for all."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Self

import structlog

from manager.background.supervision import Loop
from manager.storage.alarm_table import RULES, SILENCES, Versioned
from manager.storage.base import StorageError
from protocol.messages.alarms import COUNTED_AT_MOST, AlarmRulesResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from manager.storage.alarm_table import AlarmTable
    from manager.storage.firing_alarms import FiringPage, FiringQuery
    from manager.storage.herd_table import HerdTable
    from protocol.messages.alarms import AlarmRule, Silence

    Use = Callable[[tuple[AlarmRule, ...], tuple[Silence, ...], frozenset[str]], None]
    """Gets rules, silences, and the names of rules that cannot be read."""

log = structlog.get_logger(__name__)

REFRESH_S: Final = 1.0
TRIES: Final = 5
"""Of a change of the silences, which others may change at the same time."""


class HerdAlarms:
    """Looks once a second whether either has changed, and hands both to `use` if so; a context manager.

    Rules that this version cannot read are told in the log, once, and passed over.
    While the database cannot be read, what is known goes on to count.
    """

    def __init__(self, table: AlarmTable, herd: HerdTable, use: Use) -> None:
        self._table = table
        self._herd = herd
        self._use = use
        self._rules: Versioned[AlarmRule] = Versioned(-1, ())
        self._silences: Versioned[Silence] = Versioned(-1, ())
        self._reading: Loop | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Read both for the first time; where that fails it is tried again."""
        with contextlib.suppress(StorageError):
            await self.read()
        self._reading = Loop(
            "reading rules of alarms",
            self.read,
            REFRESH_S,
            "rules of alarms cannot be read; known ones count on",
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop looking."""
        if self._reading is not None:
            await self._reading.stop()

    async def read(self) -> None:
        """Take in what has changed; raises `StorageError`.

        One at a time: what an earlier look has found must not replace what a later one has.
        """
        async with self._one_at_a_time:
            await self._read()

    async def _read(self) -> None:
        versions = await self._table.versions()
        rules, silences = self._rules, self._silences
        if versions.get(RULES) != rules.version:
            rules = await self._table.rules()
        if versions.get(SILENCES) != silences.version:
            silences = await self._table.silences()
        if (rules, silences) != (self._rules, self._silences):
            _tell_unread(self._rules, rules)
            self._rules, self._silences = rules, silences
            self._use(rules.entries, silences.entries, self._unread)

    @property
    def receivers_named(self) -> frozenset[str]:
        """Those that rules tell, as far as the rules were read."""
        return frozenset(name for rule in self._rules.entries if rule.enabled for name in rule.receivers)

    async def rules(self) -> Versioned[AlarmRule]:
        """All rules as they are now; raises `StorageError`."""
        return await self._table.rules()

    async def silences(self) -> tuple[Silence, ...]:
        """All silences that are kept, as they are now; raises `StorageError`."""
        return (await self._table.silences()).entries

    @property
    def known(self) -> tuple[tuple[AlarmRule, ...], tuple[Silence, ...], frozenset[str]] | None:
        """What counts at the moment, as `use` has got it last; None before any were read."""
        is_read = self._rules.version >= 0 and self._silences.version >= 0
        return (self._rules.entries, self._silences.entries, self._unread) if is_read else None

    @property
    def _unread(self) -> frozenset[str]:
        return frozenset(each.told.name for each in self._rules.unread)

    async def firing(self, asked: FiringQuery) -> FiringPage:
        """Some of what fires in any group; what is of none comes beside the first page.

        Raises:
            StorageError: try again later.
        """
        page = await self._table.firing(asked)
        if asked.after is not None or asked.may_know or asked.group is not None:
            return page
        of_herd = [row for row in await self._herd.firing() if asked.fits(row)]
        total = min(page.total + len(of_herd), COUNTED_AT_MOST)
        return page._replace(rows=[*of_herd, *page.rows], total=total)

    async def acknowledge(self, rule: str, subject: str | None, by: str, at_ms: int) -> int:
        """Note who has seen what fires of no group, of one subject or all; raises `StorageError`.

        Returns:
            Of how many alarms nobody had.
        """
        return await self._herd.acknowledge(rule, subject, by, at_ms)

    async def put_rules(self, rules: Sequence[AlarmRule], seen: int) -> bool:
        """Replace all rules, if they are of the version that was `seen`; raises `StorageError`."""
        is_done = await self._table.put_rules(rules, seen)
        if is_done:
            await self.read()
        return is_done

    async def change_silences(self, change: Callable[[tuple[Silence, ...]], tuple[Silence, ...]]) -> bool:
        """Have `change` make the silences of those there are; whether that could be stored.

        Raises:
            StorageError: try again later.
        """
        for _ in range(TRIES):
            version, entries, _ = await self._table.silences()
            if await self._table.put_silences(change(entries), version):
                await self.read()
                return True
        return False


def rules_response(present: Versioned[AlarmRule]) -> AlarmRulesResponse:
    """All rules, with the tag that a change of them has to name."""
    etag = etag_of_rules(present.version)
    unread = tuple(each.told for each in present.unread)
    return AlarmRulesResponse(rules=present.entries, version=present.version, etag=etag, unread=unread)


def _tell_unread(before: Versioned[AlarmRule], now: Versioned[AlarmRule]) -> None:
    known = {each.told for each in before.unread}
    for told in (each.told for each in now.unread if each.told not in known):
        log.warning(
            "a rule of alarms is passed over: this version cannot read it",
            rule=told.name,
            kind=told.kind,
            why=told.why,
        )


def etag_of_rules(version: int) -> str:
    """The tag of that version."""
    return f'"{version}"'
