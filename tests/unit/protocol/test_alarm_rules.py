"""A rule of alarms as people write it."""

from __future__ import annotations

import msgspec

from protocol.alarm_kinds import AlarmKind
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import AlarmRule, without_defaults


def test_a_rule_is_written_without_its_defaults_and_read_as_it_was() -> None:
    """Its name and kind come first, in plain values."""
    rule = AlarmRule(name="lag", kind=AlarmKind.LAG_SECONDS, threshold=60, receivers=("ops",))
    written = without_defaults(rule)
    assert list(written.items()) == [
        ("name", "lag"),
        ("kind", "lag_seconds"),
        ("threshold", 60.0),
        ("receivers", ("ops",)),
    ]
    for each in DEFAULT_RULES:
        assert (
            msgspec.convert(msgspec.json.decode(msgspec.json.encode(without_defaults(each))), AlarmRule)
            == each
        )
