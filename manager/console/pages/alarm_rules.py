"""Changing the rules of alarms: all of them, as they are now, unless somebody else changes them meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manager.console.page import Page, PageRequest
from protocol.alarm_kinds import TRAITS
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import without_defaults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.console.page_data import PageData
    from protocol.messages.alarms import AlarmRule, AlarmRulesResponse, UnreadAlarmRule


@dataclass(frozen=True, slots=True)
class KindLine:
    """A kind of rule; `unit` is empty where it has no threshold."""

    kind: str
    meaning: str
    unit: str


@dataclass(frozen=True, slots=True)
class AlarmRulesPage:
    """What the page shows; `etag` is the rules' as they were read, `example` what to begin with.

    `unread` are rules of a newer version, which are kept.
    """

    version: int
    etag: str
    document: str
    example: str
    kinds: tuple[KindLine, ...]
    unread: tuple[UnreadAlarmRule, ...]


async def alarm_rules(page_data: PageData, request: PageRequest) -> Page:  # noqa: ARG001 - as every page is made
    """The page at `/alarms/rules`."""
    view = alarm_rules_page(await page_data.alarm_rules())
    return Page("alarm_rules.html", "Rules of alarms", "alarms", view)


def alarm_rules_page(told: AlarmRulesResponse) -> AlarmRulesPage:
    """What the page shows."""
    return AlarmRulesPage(
        version=told.version,
        etag=told.etag,
        document=_document(told.rules),
        example=_document(DEFAULT_RULES),
        kinds=tuple(
            KindLine(kind.value, traits.meaning, traits.unit or "") for kind, traits in TRAITS.items()
        ),
        unread=told.unread,
    )


def _document(rules: Sequence[AlarmRule]) -> str:
    return json.dumps({"rules": [without_defaults(rule) for rule in rules]}, indent=2)
