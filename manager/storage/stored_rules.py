"""Rules of alarms as they are stored: a list of objects in JSON, some of which a newer version may have made.

A rule that this version cannot read, as one of a kind that it does not know, does not keep it from the
others: it is told, counts for nothing, and stays where it is when the others are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from protocol.messages.alarms import AlarmRule, UnreadAlarmRule
from protocol.messages.base import faulty_place

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnreadRule(NamedTuple):
    """One that cannot be read: what is told of it, its place among all, and what is stored."""

    told: UnreadAlarmRule
    place: int
    stored: bytes


class _Named(msgspec.Struct, frozen=True):
    name: str
    kind: str


def read_rules(body: bytes) -> tuple[tuple[AlarmRule, ...], tuple[UnreadRule, ...]]:
    """All rules, and beside them those that cannot be read.

    Raises:
        msgspec.MsgspecError: it is no list of objects with a name and a kind, so no version has written it.
    """
    rules: list[AlarmRule] = []
    unread: list[UnreadRule] = []
    for place, stored in enumerate(msgspec.json.decode(body, type=list[msgspec.Raw])):
        try:
            rules.append(msgspec.json.decode(stored, type=AlarmRule))
        except msgspec.ValidationError as error:
            named, (field, fault) = msgspec.json.decode(stored, type=_Named), faulty_place(error)
            why = f"{field.removeprefix('.')}: {fault}" if field else fault
            unread.append(UnreadRule(UnreadAlarmRule(named.name, named.kind, why), place, bytes(stored)))
    return tuple(rules), tuple(unread)


def with_unread(rules: Sequence[AlarmRule], unread: Sequence[UnreadRule]) -> bytes:
    """What is to be stored: `rules`, and each of `unread` at its place, unless a rule has its name now."""
    names = {rule.name for rule in rules}
    entries: list[AlarmRule | msgspec.Raw] = [*rules]
    for each in unread:
        if each.told.name not in names:
            entries.insert(each.place, msgspec.Raw(each.stored))
    return msgspec.json.encode(entries)
