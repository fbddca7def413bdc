"""Rules of alarms that a newer version has stored."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from manager.storage.stored_rules import read_rules, with_unread
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarms import AlarmRule

FAILED: dict[str, Any] = {"name": "failed", "kind": "failed"}
NEWER: dict[str, Any] = {"name": "newer", "kind": "not_made_yet", "threshold": 5, "shape": {"a": [1, 1.0]}}
RICHER: dict[str, Any] = {"name": "richer", "kind": "failed", "shape": "round"}


def stored(*rules: Any) -> bytes:
    return json.dumps(rules).encode()


def test_a_kind_that_nobody_knows_keeps_no_rule_from_being_read() -> None:
    """Nor does a field: each is told, with what is wrong with it."""
    rules, unread = read_rules(stored(NEWER, FAILED, RICHER))
    assert rules == (AlarmRule(name="failed", kind=AlarmKind.FAILED),)
    assert [(each.told.name, each.told.kind, each.told.why) for each in unread] == [
        ("newer", "not_made_yet", "kind: Invalid enum value 'not_made_yet'"),
        ("richer", "failed", "Object contains unknown field `shape`"),
    ]


def test_what_cannot_be_read_stays_as_it_is() -> None:
    """At its place, whatever becomes of the rules around it."""
    rules, unread = read_rules(stored(FAILED, NEWER, RICHER))
    other = AlarmRule(name="other", kind=AlarmKind.UNASSIGNED)
    kept = json.loads(with_unread((*rules, other), unread))
    assert [each["name"] for each in kept] == ["failed", "newer", "richer", "other"]
    assert kept[1:3] == [NEWER, RICHER]
    assert json.loads(with_unread((), unread)) == [NEWER, RICHER]


def test_a_rule_of_the_name_takes_its_place() -> None:
    """Names are unique, and so there is a way to be rid of it."""
    _, unread = read_rules(stored(NEWER))
    kept = with_unread([AlarmRule(name="newer", kind=AlarmKind.FAILED)], unread)
    assert [each["kind"] for each in json.loads(kept)] == ["failed"]


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'[{"name": "a"}]', b"x"])
def test_what_no_version_has_written_is_an_error(body: bytes) -> None:
    """Somebody has broken the row: nobody knows what was in it."""
    with pytest.raises(msgspec.MsgspecError):
        read_rules(body)
